//! What `top` knows of the store: rows, counts, what happened lately, and what is worth an alert. Pure: looks are put in.

use std::collections::VecDeque;
use std::time::Duration;

use bandog::{LockName, Moment};
use serde_json::{Value, json};

use super::alert::{Alert, alerts};
use super::holds::Holds;
use super::rate::Rate;
use crate::args::Alerts;
use crate::entry::{Entry, time};
use crate::note::millis;
use crate::watch::{Event, Sight};

/// Events that are kept for the eye.
const KEPT: usize = 200;

/// One lock.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) entry: Entry,
    /// How long the last holds lasted, oldest first; the present one is the last.
    pub(crate) holds: Vec<Duration>,
}

impl Row {
    /// The longest that anybody has held it by now.
    pub(crate) fn held(&self) -> Option<Duration> {
        self.entry.holders.iter().map(|holder| holder.held).max()
    }

    /// The shortest lease left.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.entry.holders.iter().map(|holder| holder.left).min()
    }
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) store: String,
    pub(crate) pattern: String,
    /// How the store is looked at.
    pub(crate) looks: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) alerts: Vec<Alert>,
    /// The newest first.
    pub(crate) events: VecDeque<Event>,
    /// Locks that are not looked at.
    pub(crate) beyond: usize,
    /// What stands in the place of locks and could not be read.
    pub(crate) unread: usize,
    /// Why the store could not be asked, if it could not.
    pub(crate) trouble: Option<String>,
    pub(crate) rate: Rate,
    limits: Alerts,
    holds: Holds,
}

impl Model {
    pub(crate) fn new(store: String, pattern: &str, limits: Alerts, now: Moment) -> Self {
        Self {
            store,
            pattern: pattern.to_owned(),
            looks: String::new(),
            rows: Vec::new(),
            alerts: Vec::new(),
            events: VecDeque::new(),
            beyond: 0,
            unread: 0,
            trouble: None,
            rate: Rate::new(now),
            limits,
            holds: Holds::default(),
        }
    }

    /// Takes what happened, and how the locks are after it.
    pub(crate) fn see<'a>(
        &mut self,
        sights: impl Iterator<Item = (&'a LockName, &'a Sight)> + Clone,
        events: Vec<Event>,
        (now, wall): (Moment, u64),
    ) {
        self.rate.note(now, events.len());
        events.iter().for_each(|event| self.holds.note(event));
        self.holds.forget_all_but(sights.clone().map(|(name, _)| name));
        events.into_iter().for_each(|event| self.events.push_front(event));
        self.events.truncate(KEPT);
        self.alerts = alerts(sights.clone(), self.limits, wall);
        self.rows = sights.map(|(name, sight)| self.row(name, sight, wall)).collect();
    }

    fn row(&self, name: &LockName, sight: &Sight, wall: u64) -> Row {
        let entry = Entry::of(name.clone(), &sight.record, wall);
        let present = entry.holders.iter().map(|holder| holder.held).max();
        Row { holds: self.holds.of(name).chain(present).collect(), entry }
    }

    pub(crate) fn holders(&self) -> usize {
        self.rows.iter().map(|row| row.entry.holders.len()).sum()
    }

    pub(crate) fn waiters(&self) -> usize {
        self.rows.iter().map(|row| row.entry.queue).sum()
    }

    /// One snapshot, with what happened since the last one.
    pub(crate) fn json(&self, events: &[Event], every: Duration, (now, wall): (Moment, u64)) -> Value {
        let row = |row: &Row| {
            let mut json = row.entry.json();
            json["holds_ms"] = row.holds.iter().copied().map(millis).collect();
            json
        };
        json!({
            "event": "snapshot",
            "lock": self.pattern,
            "at": time(wall),
            "store": self.store,
            "every_ms": millis(every),
            "locks": self.rows.len(),
            "unwatched": self.beyond,
            "unread": self.unread,
            "holders": self.holders(),
            "waiters": self.waiters(),
            "changes_per_s": (self.rate.per_second(now) * 10.0).round() / 10.0,
            "error": self.trouble,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "events": events.iter().map(Event::json).collect::<Vec<_>>(),
            "alerts": self.alerts.iter().map(Alert::json).collect::<Vec<_>>(),
        })
    }
}
