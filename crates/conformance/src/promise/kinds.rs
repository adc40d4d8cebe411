//! One kind and capacity per name, while it is in use.

use bandog_core::mode::Kind;
use bandog_core::op::Refusal;

use crate::bench::{Bench, Need, Proof};

/// Another kind is refused, and the refusal names both.
pub async fn a_wrong_kind_names_both(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits])?;
    let [ann, bob] = bench.cast("kind").await;
    let hold = ann.holds(ann.ask()).await;
    let expected = Refusal::WrongKind { asked: Kind::Semaphore { capacity: 4 }, actual: Kind::ReadWrite };
    assert_eq!(bob.is_refused(&bob.ask_permits(1, 4)).await, expected);
    ann.releases(hold.id()).await;
    ann.holds(ann.ask_permits(1, 4)).await;
    let expected = Refusal::WrongKind { asked: Kind::ReadWrite, actual: Kind::Semaphore { capacity: 4 } };
    assert_eq!(bob.is_refused(&bob.ask()).await, expected);
    Ok(())
}

/// Another capacity is refused, and the refusal names both.
pub async fn a_wrong_capacity_names_both(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits])?;
    let [ann, bob] = bench.cast("capacity").await;
    ann.holds(ann.ask_permits(1, 4)).await;
    let expected =
        Refusal::WrongKind { asked: Kind::Semaphore { capacity: 5 }, actual: Kind::Semaphore { capacity: 4 } };
    assert_eq!(bob.is_refused(&bob.ask_permits(1, 5)).await, expected);
    bob.holds(bob.ask_permits(1, 4)).await;
    Ok(())
}

/// A name that nobody uses takes any kind, whether it was released or has expired.
pub async fn a_free_name_takes_any_kind(bench: &Bench) -> Proof {
    bench.needs(&[Need::Permits])?;
    let [ann] = bench.cast("free").await;
    let hold = ann.holds(ann.ask()).await;
    ann.releases(hold.id()).await;
    let hold = ann.holds(ann.ask_permits(1, 2)).await;
    ann.releases(hold.id()).await;
    ann.holds(ann.ask_briefly()).await;
    bench.outlast(bench.terms.lease).await;
    ann.holds(ann.ask_permits(3, 3)).await;
    Ok(())
}
