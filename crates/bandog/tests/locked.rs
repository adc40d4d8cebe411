//! `#[locked]`: what the function does, returns and leaves behind.
#![cfg(feature = "macros")]

mod common;

use std::cell::Cell;
use std::fmt::Display;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bandog::{AcquireError, ErrorKind, GuardState, Locks, LossReason, RunError, locked};
use common::{World, ms, poll, ready, secs, waiting};

/// An error of somebody's own.
#[derive(Debug, thiserror::Error)]
enum PayError {
    #[error("no money")]
    NoMoney,
    #[error(transparent)]
    Lock(#[from] RunError),
}

impl PayError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::NoMoney => None,
            Self::Lock(error) => Some(error.kind()),
        }
    }
}

struct Order {
    id: u64,
    lines: (u32, u32),
}

impl Order {
    fn shop(&self) -> &str {
        "north"
    }

    fn part(&self, of: u64) -> u64 {
        self.id / of
    }
}

fn order() -> Order {
    Order { id: 1001, lines: (3, 4) }
}

/// The names that are held now.
async fn held(locks: &Locks) -> Vec<String> {
    locks.list("*").await.expect("the store answers").into_iter().map(|info| info.name.to_string()).collect()
}

#[locked("order:{order.id}:{order.shop()}:{order.part(10)}:{order.lines.1}:{day:04}:{{{tag}}}")]
async fn names(locks: &Locks, order: &Order, day: u32, tag: impl Display) -> Result<Vec<String>, RunError> {
    Ok(held(locks).await)
}

#[tokio::test]
async fn the_name_is_made_from_the_arguments() {
    let locks = World::near().locks();
    let names = names(&locks, &order(), 7, "x").await.unwrap();
    assert_eq!(names, ["order:1001:north:100:4:0007:{x}"]);
    assert!(held(&locks).await.is_empty(), "released");
}

#[locked("order:{id}")]
async fn pay(locks: &Locks, id: u64, paid: u32) -> Result<u32, PayError> {
    if paid == 0 {
        return Err(PayError::NoMoney);
    }
    let change = u32::checked_sub(paid, 5).ok_or(PayError::NoMoney)?;
    assert_eq!(held(locks).await, ["order:7"]);
    Ok(change)
}

#[tokio::test]
async fn the_body_returns_as_any_other() {
    for world in World::both() {
        let locks = world.locks();
        assert_eq!(pay(&locks, 7, 8).await.unwrap(), 3);
        assert!(matches!(pay(&locks, 7, 0).await, Err(PayError::NoMoney)), "by return");
        assert!(matches!(pay(&locks, 7, 1).await, Err(PayError::NoMoney)), "by a question mark");
        world.settle().await;
        assert!(world.is_free("order:7"));
    }
}

#[tokio::test]
async fn busy_is_an_error_at_once_and_names_the_holder() {
    for world in World::both() {
        let (here, there) = (world.locks(), world.builder().label("billing").build().unwrap());
        let guard = there.mutex("order:7").acquire().await.unwrap();
        let error = pay(&here, 7, 8).await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::Busy));
        let says = error.to_string();
        let holder = guard.hold().holder().unwrap().to_string();
        assert!(says.starts_with(r#"lock "order:7" ("#) && says.contains("): not acquired: busy; held by "), "{says}");
        assert!(says.contains(&holder) && says.contains("billing"), "{says}");
        let PayError::Lock(RunError::Acquire(AcquireError::Busy { holder: Some(holder), .. })) = error else {
            panic!("{error:?}")
        };
        assert_eq!(Some(holder.holder), guard.hold().holder());
        assert_eq!(world.waiters("order:7"), 0, "nobody waits");
    }
}

#[locked("job", wait = "5s", lease = "9s", renew_at = 0.5, max_renewals = 2)]
async fn kept(locks: &Locks, work: impl Future<Output = ()>) -> Result<(), RunError> {
    work.await;
    Ok(())
}

#[tokio::test]
async fn locked_function_waits_as_long_as_its_attribute_says() {
    let world = World::near();
    let (here, there) = (world.locks(), world.locks());
    let guard = there.mutex("job").acquire().await.unwrap();
    let mut late = Box::pin(kept(&here, async {}));
    assert!(poll(&mut late).is_pending());
    world.pass(ms(4_999)).await;
    assert!(poll(&mut late).is_pending());
    world.pass(ms(1)).await;
    assert_eq!(ready(&mut late).unwrap_err().kind(), ErrorKind::Timeout);
    let mut passed = Box::pin(kept(&here, async {}));
    assert!(poll(&mut passed).is_pending());
    guard.release().await.unwrap();
    ready(&mut passed).unwrap();
}

#[tokio::test]
async fn the_options_reach_the_request() {
    let world = World::near();
    let locks = world.locks();
    let mut works = Box::pin(kept(&locks, std::future::pending()));
    assert!(poll(&mut works).is_pending());
    let left = || world.view("job").unwrap().holders[0].remaining;
    assert_eq!(left(), secs(9), "the lease");
    world.pass(ms(4_499)).await;
    assert_eq!(left(), ms(4_501));
    world.pass(ms(1)).await;
    assert_eq!(left(), secs(9), "renewed at its half");
    world.pass(ms(4_500)).await;
    assert_eq!(left(), secs(9), "and again");
    world.pass(ms(4_500)).await;
    assert_eq!(left(), ms(4_500), "and no more than that");
    world.pass(ms(4_500)).await;
    assert_eq!(ready(&mut works).unwrap_err().kind(), ErrorKind::Lost);
}

#[locked("job", max_hold = "3s", at_least = "40s", fair)]
async fn bounded(locks: &Locks, work: impl Future<Output = ()>) -> Result<(), RunError> {
    work.await;
    Ok(())
}

#[tokio::test]
async fn the_longest_and_the_shortest_hold_reach_the_request() {
    let world = World::near();
    let locks = world.locks();
    let mut works = Box::pin(bounded(&locks, std::future::pending()));
    assert!(poll(&mut works).is_pending());
    world.pass(secs(3)).await;
    let Err(RunError::Lost { reason, .. }) = ready(&mut works) else { panic!("should be lost") };
    assert_eq!(reason, LossReason::MaxHold);
    world.settle().await;
    assert!(world.is_free("job"), "what is lost does not stay");
    bounded(&locks, async {}).await.unwrap();
    assert_eq!(bounded(&locks, async {}).await.unwrap_err().kind(), ErrorKind::Busy, "it stays for forty seconds");
    world.pass(secs(40)).await;
    bounded(&locks, async {}).await.unwrap();
}

#[locked("queue", fair = true, wait = "1m")]
async fn in_person(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[tokio::test]
async fn a_fair_one_stands_in_line_in_person() {
    let world = World::near();
    let (here, there) = (world.locks(), world.locks());
    let _held = there.mutex("queue").acquire().await.unwrap();
    let _waits = waiting(Box::pin(in_person(&here)));
    assert!(world.view("queue").unwrap().waiters[0].fair);
}

#[locked("cfg", shared)]
async fn look(locks: &Locks, work: impl Future<Output = ()>) -> Result<(), RunError> {
    work.await;
    Ok(())
}

#[tokio::test]
async fn shared_ones_run_together_and_keep_writers_out() {
    let world = World::near();
    let locks = world.locks();
    let mut one = Box::pin(look(&locks, std::future::pending()));
    assert!(poll(&mut one).is_pending());
    look(&locks, async {}).await.expect("together");
    assert!(locks.rwlock("cfg").write().try_acquire().await.unwrap().is_none());
    drop(one);
    world.settle().await;
    let _writer = locks.rwlock("cfg").write().acquire().await.unwrap();
    assert_eq!(look(&locks, async {}).await.unwrap_err().kind(), ErrorKind::Busy);
}

/// Notes that it was dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[locked("order:{id}", hold = hold)]
async fn long(locks: &Locks, id: u64, dropped: Dropped) -> Result<(), PayError> {
    assert!(matches!(hold.state(), GuardState::Held { .. }));
    assert_eq!(hold.name(), format!("order:{id}"));
    let _inside = dropped;
    std::future::pending::<()>().await;
    unreachable!("dropped before")
}

#[tokio::test]
async fn a_lost_lease_drops_an_async_body() {
    for world in World::both() {
        let locks = world.locks();
        let dropped = Arc::new(AtomicBool::new(false));
        let mut works = Box::pin(long(&locks, 7, Dropped(Arc::clone(&dropped))));
        common::until("it runs", || poll(&mut works).is_pending() && world.holders("order:7") == 1).await;
        assert!(!dropped.load(Ordering::SeqCst));
        locks.revoke("order:7", "deploying").await.unwrap();
        world.settle().await;
        let error = ready(&mut works).unwrap_err();
        assert!(dropped.load(Ordering::SeqCst));
        assert_eq!(error.kind(), Some(ErrorKind::Lost));
        assert!(error.to_string().contains("lost while running: revoked: deploying"), "{error}");
    }
}

#[tokio::test]
async fn dropping_the_call_releases_the_lock() {
    let world = World::near();
    let locks = world.locks();
    let works = waiting(Box::pin(long(&locks, 7, Dropped(Arc::default()))));
    assert_eq!(world.holders("order:7"), 1);
    drop(works);
    world.settle().await;
    assert!(world.is_free("order:7"));
}

#[locked("daily", on_busy = "skip")]
async fn daily(locks: &Locks, ran: &AtomicU32) -> Option<u32> {
    Some(ran.fetch_add(1, Ordering::SeqCst) + 1)
}

#[locked("daily", on_busy = "skip")]
async fn daily_or_error(locks: &Locks, wrong: bool) -> Result<Option<u32>, PayError> {
    if wrong { Err(PayError::NoMoney) } else { Ok(Some(1)) }
}

#[locked("daily", on_busy = "skip", default = 0)]
async fn daily_count(locks: &Locks, wrong: bool) -> Result<u32, PayError> {
    if wrong { Err(PayError::NoMoney) } else { Ok(1) }
}

#[locked("daily", on_busy = "skip", default = (), wait = "2s")]
async fn daily_nothing(locks: &Locks, ran: &AtomicU32) {
    ran.fetch_add(1, Ordering::SeqCst);
}

#[locked("daily", on_busy = "skip", wait = "2s")]
async fn daily_in_time(locks: &Locks) -> Result<Option<u32>, PayError> {
    Ok(Some(1))
}

#[tokio::test]
async fn a_busy_lock_is_skipped_if_so_told() {
    let world = World::near();
    let (locks, other, ran) = (world.locks(), world.locks(), AtomicU32::new(0));
    assert_eq!(daily(&locks, &ran).await, Some(1));
    assert_eq!(daily_or_error(&locks, false).await.unwrap(), Some(1));
    assert!(matches!(daily_or_error(&locks, true).await, Err(PayError::NoMoney)));
    assert_eq!(daily_count(&locks, false).await.unwrap(), 1);
    daily_nothing(&locks, &ran).await;

    let _held = other.mutex("daily").acquire().await.unwrap();
    assert_eq!(daily(&locks, &ran).await, None);
    assert_eq!(daily_or_error(&locks, false).await.unwrap(), None);
    assert_eq!(daily_count(&locks, true).await.unwrap(), 0);
    let mut waits = Box::pin(daily_nothing(&locks, &ran));
    assert!(poll(&mut waits).is_pending());
    let mut in_time = Box::pin(daily_in_time(&locks));
    assert!(poll(&mut in_time).is_pending());
    world.pass(secs(2)).await;
    ready(&mut waits);
    assert_eq!(ready(&mut in_time).unwrap(), None, "a wait that is over is a skip too");
    assert_eq!(ran.load(Ordering::SeqCst), 2, "not when it was skipped");
}

#[tokio::test]
async fn error_other_than_busy_does_not_skip() {
    let locks = World::near().locks();
    locks.shutdown().await.unwrap();
    assert_eq!(daily_or_error(&locks, false).await.unwrap_err().kind(), Some(ErrorKind::Closed));
    assert_eq!(daily_count(&locks, false).await.unwrap_err().kind(), Some(ErrorKind::Closed));
    assert_eq!(daily(&locks, &AtomicU32::new(0)).await, None, "which only the log can tell");
}

/// A service with locks of its own.
struct Shop {
    locks: Locks,
    name: &'static str,
    sold: u32,
}

impl Shop {
    /// Kept: this comment, the visibility and the attribute.
    #[must_use = "kept"]
    #[locked("shop:{self.name}", locks = self.locks)]
    pub(crate) async fn sell(&mut self, count: u32) -> Result<u32, RunError> {
        self.sold += count;
        Ok(self.sold)
    }

    #[locked("shop:{self.name}", locks = self.locks)]
    async fn title(&self) -> Result<&str, RunError> {
        Ok(self.name)
    }

    #[locked("shop:{self.name}", locks = &self.locks)]
    async fn close(self) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
        if self.sold == 0 {
            return Err("nothing sold".into());
        }
        Ok(self.sold)
    }

    #[locked("shop:{self.name}:{key}", locks = self.locks)]
    async fn stored<'a, K, const N: usize>(
        &self,
        key: K,
        items: &'a [u32; N],
    ) -> Result<impl Iterator<Item = &'a u32> + use<'a, K, N>, RunError>
    where
        K: Display + Clone,
    {
        let _again = key.clone();
        Ok(items.iter())
    }
}

trait Counts {
    async fn count(&self) -> Result<u32, RunError>;
}

impl Counts for Shop {
    #[locked("shop:{self.name}", locks = self.locks)]
    async fn count(&self) -> Result<u32, RunError> {
        Ok(self.sold)
    }
}

#[tokio::test]
async fn methods_and_generics_work() {
    let mut shop = Shop { locks: World::near().locks(), name: "north", sold: 0 };
    assert_eq!(shop.sell(3).await.unwrap(), 3);
    assert_eq!(shop.title().await.unwrap(), "north");
    assert_eq!(shop.count().await.unwrap(), 3);
    assert_eq!(shop.stored("x", &[1, 2]).await.unwrap().sum::<u32>(), 3);
    let held = shop.locks.mutex("shop:north").acquire().await.unwrap();
    assert_eq!(shop.sell(3).await.unwrap_err().kind(), ErrorKind::Busy);
    held.release().await.unwrap();
    assert_eq!(shop.close().await.unwrap(), 3);
}

#[locked("order:{id}")]
async fn taken_apart(Order { id, .. }: Order, (locks, mut sum): (&Locks, u64)) -> Result<u64, RunError> {
    sum += id;
    Ok(sum)
}

#[locked("local")]
async fn stays_on_its_thread(locks: &Locks, count: Rc<Cell<u32>>) -> Result<u32, RunError> {
    tokio::task::yield_now().await;
    count.set(count.get() + 1);
    Ok(count.get())
}

#[tokio::test]
async fn futures_are_as_free_as_their_bodies() {
    fn sendable<T: Send>(future: T) -> T {
        future
    }
    let locks = World::near().locks();
    assert_eq!(sendable(taken_apart(order(), (&locks, 1))).await.unwrap(), 1002);
    let spawned = locks.clone();
    tokio::spawn(async move { pay(&spawned, 7, 8).await }).await.unwrap().unwrap();
    assert_eq!(stays_on_its_thread(&locks, Rc::default()).await.unwrap(), 1);
}

/// Names that the expansion might use itself.
#[locked("job", locks = run)]
async fn names_do_not_clash(run: &Locks, wanted: u32, request: u32) -> Result<u32, RunError> {
    let (hold, guard, bandog) = (1, 2, 3);
    let _ = run;
    Ok(wanted + request + hold + guard + bandog)
}

#[tokio::test]
async fn the_expansion_takes_no_names() {
    assert_eq!(names_do_not_clash(&World::near().locks(), 10, 20).await.unwrap(), 36);
}

#[test]
fn the_page_names_every_option() {
    let page = include_str!("../locked.md");
    let said = include_str!("../../macros/tests/ui/options.stderr").lines().next().unwrap();
    let known = said.split("there are ").nth(1).unwrap().split(", ");
    let (_, table) = page.split_once("## Options").unwrap();
    let rows = table.split("## ").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    let word =
        |text: &str| text.trim_matches(|c: char| !c.is_alphabetic()).split([' ', '`']).next().unwrap().to_owned();
    let on_page: std::collections::BTreeSet<String> = rows.map(word).collect();
    assert_eq!(on_page, known.map(word).collect());
}
