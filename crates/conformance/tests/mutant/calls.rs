//! Mutants that mishandle the calls themselves: names, batches, lanes, listings, what they say about themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bandog_core::ledger::{Applied, Record};
use bandog_core::name::LockName;
use bandog_core::op::{Op, RecordView, Reply};
use bandog_core::store::{Capabilities, Connection, Listing, Page, Pulse, Store, StoreError};
use bandog_core::time::{LeaseTime, Now};

use super::Mutant;
use crate::desk::{Desk, Handle, Records, Twist};

struct Names(fn(&str) -> String);

impl Twist for Names {
    fn apply(&self, desk: &Desk, records: &mut Records, now: Now, name: LockName, op: &Op) -> Applied {
        desk.apply_right(records, now, LockName::new((self.0)(name.as_str())).unwrap(), op)
    }
}

struct Lists(fn(Page, &Listing) -> Page);

impl Twist for Lists {
    fn list(&self, page: Page, query: &Listing) -> Page {
        (self.0)(page, query)
    }
}

struct Able(Capabilities);

impl Twist for Able {
    fn capabilities(&self) -> Capabilities {
        self.0
    }
}

macro_rules! mutant {
    ($name:ident { $($method:item)* }) => {
        struct $name;
        impl Twist for $name { $($method)* }
    };
}

mutant!(Unsettled {
    fn tends(&self) -> bool {
        false
    }
});
mutant!(Within {
    fn answers_inside(&self) -> bool {
        true
    }
});
mutant!(Timeless {
    fn time(&self, _: LeaseTime) -> LeaseTime {
        LeaseTime::ZERO
    }
});
mutant!(Separate {
    fn lane(&self, desk: &Arc<Desk>) -> Arc<dyn Store> {
        Arc::new(Handle(Desk::new(Arc::clone(&desk.clock), Arc::new(Self))))
    }
});
mutant!(Backwards {
    fn batch(&self, mut replies: Vec<Result<Reply, StoreError>>) -> Vec<Result<Reply, StoreError>> {
        replies.reverse();
        replies
    }
});
mutant!(Silent {
    fn batch(&self, mut replies: Vec<Result<Reply, StoreError>>) -> Vec<Result<Reply, StoreError>> {
        drop(replies.pop().expect("at least one call"));
        replies
    }
});
mutant!(Slow {
    fn is_slow(&self) -> bool {
        true
    }
});
struct Uneven(AtomicBool);

impl Twist for Uneven {
    fn is_slow(&self) -> bool {
        !self.0.fetch_not(Ordering::Relaxed)
    }
}

mutant!(Inside {
    fn delivers_inside(&self) -> bool {
        true
    }
});
mutant!(Hoarder {
    fn keeps(&self, _: &Record, _: LeaseTime) -> bool {
        true
    }
});
mutant!(Changeable {
    fn lane(&self, desk: &Arc<Desk>) -> Arc<dyn Store> {
        let able = Able(Capabilities { fencing: false, ..self.capabilities() });
        Arc::new(Handle(Desk::new(Arc::clone(&desk.clock), Arc::new(able))))
    }
});

mutant!(Mute {
    fn probe(&self, connection: Connection) -> Result<Pulse, StoreError> {
        if connection == Connection::News { Err(StoreError::unknown("nobody hears")) } else { Ok(Pulse { opened: 1 }) }
    }
});
struct Wasteful(AtomicU64);

impl Twist for Wasteful {
    fn probe(&self, _: Connection) -> Result<Pulse, StoreError> {
        Ok(Pulse { opened: self.0.fetch_add(1, Ordering::Relaxed) + 1 })
    }
}

pub(crate) fn all() -> Vec<Mutant> {
    let full = Capabilities::FULL;
    vec![
        ("folds case", Arc::new(Names(str::to_lowercase))),
        ("trims names", Arc::new(Names(|name| name.trim().to_owned()))),
        ("takes part of a name for a tag", Arc::new(Names(|name| name.replace(['{', '}'], "")))),
        ("cuts long names", Arc::new(Names(|name| name.chars().take(100).collect()))),
        ("ignores patterns", Arc::new(Lists(everything))),
        ("ignores the limit", Arc::new(Lists(|page, _| Page { rows: doubled(&page), ..page }))),
        ("forgets the second page", Arc::new(Lists(|page, _| Page { next: None, ..page }))),
        ("lists nothing", Arc::new(Lists(|_, _| Page::default()))),
        (
            "counts only the waiters that it lists",
            Arc::new(Lists(|page, _| of_each(page, |view| view.queue = view.waiters.len()))),
        ),
        ("lists the last waiters", Arc::new(Lists(|page, _| of_each(page, |view| view.waiters.reverse())))),
        ("never ends a listing", Arc::new(Lists(|page, _| Page { next: Some(String::new()), ..page }))),
        ("leaves work over", Arc::new(Unsettled)),
        ("holds its lock while it answers", Arc::new(Within)),
        ("has no clock", Arc::new(Timeless)),
        ("gives every lane its own records", Arc::new(Separate)),
        ("answers batches backwards", Arc::new(Backwards)),
        ("answers batches with more than was asked", Arc::new(Silent)),
        ("says it is in process and is not", Arc::new(Slow)),
        ("lets calls overtake each other", Arc::new(Uneven(AtomicBool::new(false)))),
        ("delivers while it is locked", Arc::new(Inside)),
        ("keeps everything for ever", Arc::new(Hoarder)),
        ("does not answer where it hears", Arc::new(Mute)),
        ("connects for every probe", Arc::new(Wasteful(AtomicU64::new(0)))),
        ("says something else on every lane", Arc::new(Changeable)),
        ("denies readers and serves them", Arc::new(Able(Capabilities { shared: false, ..full }))),
        ("denies semaphores and serves them", Arc::new(Able(Capabilities { permits: false, ..full }))),
        ("denies its queue and queues", Arc::new(Able(Capabilities { queue: false, ..full }))),
        ("denies inspection and shows all", Arc::new(Able(Capabilities { inspect: false, ..full }))),
    ]
}

fn everything(page: Page, query: &Listing) -> Page {
    let name = LockName::new("somebody else's").unwrap();
    let other = page.rows.first().map(|(_, view)| (name, view.clone())).filter(|_| query.after.is_none());
    Page { rows: page.rows.into_iter().chain(other).collect(), ..page }
}

fn of_each(mut page: Page, twist: fn(&mut RecordView)) -> Page {
    page.rows.iter_mut().for_each(|(_, view)| twist(view));
    page
}

fn doubled(page: &Page) -> Vec<(LockName, RecordView)> {
    page.rows.iter().chain(&page.rows).cloned().collect()
}
