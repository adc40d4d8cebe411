//! The client: what the lock machine does with each wish and each message.
//!
//! | here | in the machine |
//! |---|---|
//! | [`State::ask`] | a claim with a fresh id (rule 3); `s*` is the time before its send (rule 1) |
//! | [`State::beat`] | a heartbeat of a waiter |
//! | [`State::keep`] | a renewal of a hold |
//! | [`State::part`] | release, cancel and giving up on an answer: one request, whatever the claim is (rule 4) |
//! | `on_verdict`, `on_standing`, `on_renewed` | replies; deadlines count from their requests' send (rule 2) |
//! | `on_push` | a pushed grant: its deadline rests on the last "still queued" (rule 1) |

use std::ops::RangeInclusive;

use super::law::Law;
use super::message::{Answer, Ask, Message};
use super::rule::Rule;
use super::state::{Client, Id, Phase, State, Ticks};

impl State {
    /// A client claims the lock with an id that has no trace left anywhere; nothing happens if too many were left behind.
    pub(super) fn ask(&mut self, law: &Law, client: u8) -> bool {
        let numbers = 0..=law.bounds.left_behind;
        let free = |seq: &u8| !law.keeps(Rule::FreshId) || !self.knows(Id { client, seq: *seq });
        let Some(seq) = numbers.clone().find(free) else { return false };
        let (phase, asked, unanswered) = (Phase::Sent, law.bounds.window, law.fresh());
        *self.client_mut(client) = Client { phase, seq, asked, unanswered };
        if self.left_behind(numbers) > usize::from(law.bounds.left_behind) {
            return false;
        }
        self.send(Message::Ask(Ask::Claim, Id { client, seq }, 0));
        true
    }

    fn left_behind(&self, numbers: RangeInclusive<u8>) -> usize {
        let busy = (0..).zip(&self.clients).filter(|(_, client)| client.phase != Phase::Idle);
        let others = busy
            .flat_map(|(client, at)| numbers.clone().filter(|seq| *seq != at.seq).map(move |seq| Id { client, seq }));
        others.filter(|id| self.knows(*id)).count()
    }

    /// Whether an id has left a trace.
    pub(super) fn knows(&self, id: Id) -> bool {
        self.net.iter().any(|message| message.id() == id)
            || self.store.queue.iter().any(|waiter| waiter.id == id)
            || self.store.holder.is_some_and(|hold| hold.id == id)
            || self.store.done.iter().any(|(done, _)| *done == id)
            || self.over.contains(&id)
    }

    /// A waiter sends a heartbeat.
    pub(super) fn beat(&mut self, law: &Law, client: u8) {
        if !law.keeps(Rule::StillQueuedAnswered) {
            self.client_mut(client).asked = law.bounds.window;
        }
        self.send(Message::Ask(Ask::Heartbeat, self.current(client), 0));
    }

    /// A holder renews its lease, or a grant is confirmed.
    pub(super) fn keep(&mut self, client: u8) {
        self.send(Message::Ask(Ask::Renew, self.current(client), 0));
    }

    /// A client is through with its claim, whatever that has become.
    pub(super) fn part(&mut self, client: u8) {
        self.send(Message::Release(self.current(client), self.client(client).unanswered));
        self.forget(client);
    }

    fn forget(&mut self, client: u8) {
        *self.client_mut(client) = Client::IDLE;
    }

    /// A client takes a message in.
    pub(super) fn hear(&mut self, law: &Law, message: Message) {
        let id = message.id();
        let known = self.client(id.client).phase != Phase::Idle && self.current(id.client) == id;
        match message {
            Message::Granted(_) if known => self.on_push(law, id.client),
            // A grant for an unknown id is answered with a release. Whatever copy of its claim is under way was sent before now.
            Message::Granted(_) if law.keeps(Rule::UnknownGrant) => self.send(Message::Release(id, law.fresh())),
            Message::Granted(_) => self.send(Message::Release(id, 0)),
            Message::Reply(ask, _, answer) if known => match ask {
                Ask::Claim => self.on_verdict(law, id, answer),
                Ask::Heartbeat => self.on_standing(law, id.client, answer),
                Ask::Renew => self.on_renewed(id.client, answer),
            },
            _ => {}
        }
    }

    fn on_verdict(&mut self, law: &Law, id: Id, answer: Answer) {
        if law.keeps(Rule::OneCopy) {
            // A connection does not double what it carries, and an answered claim is not sent again.
            self.net.retain(|message| !message.is_claim() || message.id() != id);
        }
        let client = self.client_mut(id.client);
        client.unanswered = 0;
        if client.phase != Phase::Sent {
            return;
        }
        match answer {
            Answer::Granted { proves } => self.land(id.client, proves),
            Answer::Queued { .. } => client.phase = Phase::Queued,
            Answer::Gone => self.forget(id.client),
        }
    }

    fn on_standing(&mut self, law: &Law, who: u8, answer: Answer) {
        let client = self.client_mut(who);
        if client.phase != Phase::Queued {
            return;
        }
        match answer {
            Answer::Granted { proves } => self.land(who, proves),
            Answer::Queued { .. } if !law.keeps(Rule::StillQueuedSend) => client.asked = law.bounds.window,
            Answer::Queued { .. } if !law.keeps(Rule::StillQueuedAnswered) => {}
            Answer::Queued { asked } => client.asked = asked,
            Answer::Gone => self.forget(who),
        }
    }

    fn on_push(&mut self, law: &Law, who: u8) {
        let client = self.client(who);
        if matches!(client.phase, Phase::Sent | Phase::Queued) {
            let proves = if law.keeps(Rule::PushDeadline) { client.asked } else { law.bounds.window };
            self.land(who, proves);
        }
    }

    fn on_renewed(&mut self, who: u8, answer: Answer) {
        let phase = self.client(who).phase;
        match (phase, answer) {
            (Phase::Held { left: 0 }, Answer::Granted { .. }) => {}
            (Phase::Held { left }, Answer::Granted { proves }) => self.hold(who, left.max(proves)),
            // The answer took longer than the lease: it is not ours to use.
            (Phase::Confirming, Answer::Granted { proves: 0 }) => self.part(who),
            (Phase::Confirming, Answer::Granted { proves }) => self.hold(who, proves),
            (Phase::Confirming | Phase::Held { .. }, _) => self.forget(who),
            _ => {}
        }
    }

    /// A grant has arrived: a hold if time is left, else it must be confirmed first.
    fn land(&mut self, who: u8, proves: Ticks) {
        if proves > 0 {
            return self.hold(who, proves);
        }
        self.client_mut(who).phase = Phase::Confirming;
        self.keep(who);
    }

    fn hold(&mut self, who: u8, left: Ticks) {
        self.client_mut(who).phase = Phase::Held { left };
    }
}
