//! Whatever happens to a lock: its record is read as it was written, in either format.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::format::Format;
use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::{Limits, Record};
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Line, News, Op, Patience, Release, Renew, Revoke, Target, Upgrade};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_core::token::Stamp;
use bandog_record::{decode, decode_news, encode, encode_news};
use proptest::prelude::*;

use crate::BOTH;

fn client() -> impl Strategy<Value = Client> {
    (0..3_u128, "[a-zß\u{1F512}]{0,6}")
        .prop_map(|(seed, label)| Client::new(ClientId::from_random(seed), Who { host: label.clone(), pid: 7, label }))
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        3 => Just(Mode::Exclusive),
        3 => Just(Mode::Shared),
        1 => (1..=4_u32).prop_map(|count| Mode::permits(count, 4).unwrap()),
    ]
}

fn claim() -> impl Strategy<Value = Claim> {
    (client(), 1..6_u64, mode(), any::<bool>(), any::<bool>(), 1..60_000_u64).prop_map(
        |(client, ordinal, mode, fair, waits, lease)| Claim {
            id: client.holder(ordinal),
            inbox: client.inbox(),
            who: Arc::clone(client.who()),
            mode,
            lease: Lease::new(Duration::from_millis(lease.max(100))).unwrap(),
            window: Duration::from_millis(lease.max(100) / 2),
            fair,
            patience: if waits { Patience::Queue } else { Patience::Try },
            not_after: LeaseTime::from_millis(lease * 20),
            ballot: fair.then(|| Stamp::from_micros(lease)),
            after: None,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => claim().prop_map(Op::Acquire),
        2 => claim().prop_map(|claim| Op::Release(Release { id: claim.id, not_after: None, again: None })),
        1 => (claim(), claim()).prop_map(|(old, new)| Op::Release(Release {
            id: old.id, not_after: Some(old.not_after), again: Some(Box::new(new)),
        })),
        1 => claim().prop_map(|claim| Op::Renew(Renew::new(claim.id, claim.lease))),
        1 => (claim(), claim()).prop_map(|(from, claim)| Op::Upgrade(Upgrade {
            from: from.id, claim: Claim { mode: Mode::Exclusive, ..claim },
        })),
        1 => (claim(), any::<bool>(), ".{0,20}").prop_map(|(claim, now, reason)| Op::Revoke(Revoke {
            target: Target::Holder(claim.id.public()), reason, by: claim.who, now,
        })),
    ]
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![
        (any::<u64>(), 0..u64::MAX >> 12, any::<u32>(), any::<bool>()).prop_map(|(number, stamp, waiters, fair)| {
            News::Granted { number, stamp: Stamp::from_micros(stamp), line: Line { waiters, fair } }
        }),
        any::<bool>().prop_map(|fair| News::Waiting { fair }),
        (any::<u64>(), ".{0,40}").prop_map(|(number, reason)| News::Revoked { number, reason }),
    ]
}

proptest! {
    #[test]
    fn record_is_read_as_it_was_written(ops in prop::collection::vec((op(), 0..3000_u64), 0..24), name in ".{1,12}") {
        let (mut record, mut millis) = (Record::default(), 1000);
        for (op, step) in ops {
            millis += step;
            let wall = WallTime::from_micros(millis * 1000);
            let now = Now { lease: LeaseTime::from_millis(millis), wall, run: RunId(1) };
            record.apply_and_tend(&Limits::default(), now, &op);
            for format in BOTH {
                let bytes = encode(&name, &record, format).unwrap();
                let read = decode(&name, &bytes);
                prop_assert_eq!(read.as_ref(), Ok(&record));
            }
        }
    }

    #[test]
    fn news_is_read_as_it_was_written(news in news()) {
        for format in BOTH {
            prop_assert_eq!(decode_news(&encode_news(&news, format).unwrap()), Ok(news.clone()));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), first in 0..6_u8) {
        for bytes in [bytes.clone(), [&[first][..], &bytes].concat()] {
            let _ = decode("job", &bytes);
            if let Ok(news) = decode_news(&bytes) {
                let again = encode_news(&news, Format::NEWEST).unwrap();
                prop_assert_eq!(decode_news(&again), Ok(news));
            }
        }
    }
}
