//! A path of the checker in words.

use super::message::{Answer, Ask, Message};
use super::model::Action;
use super::state::{Id, Phase, State};

/// Tells a path, step by step. An id without a trace is used again; here every claim has a number of its own.
#[derive(Debug, Default)]
pub(super) struct Teller {
    claims: Vec<Id>,
}

impl Teller {
    /// What happens in a step, and how things stand then.
    pub(super) fn tell(&mut self, from: &State, action: Action, to: &State) -> (String, String) {
        if let Action::Claim(who) = action {
            let id = to.current(who);
            if !from.knows(id) {
                self.claims.push(id);
            }
        }
        (self.step(from, action), self.scene(to))
    }

    fn step(&self, state: &State, action: Action) -> String {
        match action {
            Action::Claim(who) => format!("{} claims the lock", name(who)),
            Action::Heartbeat(who) => format!("{} sends a heartbeat", name(who)),
            Action::Renew(who) => format!("{} sends a renewal", name(who)),
            Action::Release(who) => parting(state, who),
            Action::Deliver(place) => format!("{} arrives", self.message(&state.net[place])),
            Action::Double(place) => format!("{} arrives, a copy is still under way", self.message(&state.net[place])),
            Action::Lose(place) => format!("{} is lost", self.message(&state.net[place])),
            Action::Tick => "a tick passes".to_owned(),
        }
    }

    /// Who holds in the store, who waits, who believes to hold.
    fn scene(&self, state: &State) -> String {
        let holder = state.store.holder.map_or_else(
            || "free".to_owned(),
            |hold| {
                let unclaimed = if hold.unclaimed { " unconfirmed" } else { "" };
                format!("{}{unclaimed} {}", self.label(hold.id), left(hold.left))
            },
        );
        let queue: Vec<String> = state.store.queue.iter().map(|waiter| self.label(waiter.id)).collect();
        let queue = if queue.is_empty() { String::new() } else { format!(", then {}", queue.join(", ")) };
        let beliefs = (0..).zip(&state.clients).filter_map(|(who, client)| belief(who, client.phase));
        let beliefs: Vec<String> = beliefs.collect();
        let beliefs = if beliefs.is_empty() { "nobody".to_owned() } else { beliefs.join(" and ") };
        format!("store: {holder}{queue}; believes to hold: {beliefs}")
    }

    fn message(&self, message: &Message) -> String {
        let label = self.label(message.id());
        match message {
            Message::Ask(Ask::Claim, ..) => format!("the claim of {label}"),
            Message::Ask(Ask::Heartbeat, ..) => format!("the heartbeat of {label}"),
            Message::Ask(Ask::Renew, ..) => format!("the renewal of {label}"),
            Message::Release(_, 0) => format!("the release of {label}"),
            Message::Release(..) => format!("the release of {label}, naming its not-after,"),
            Message::Reply(_, _, Answer::Granted { .. }) => format!("the answer \"granted\" to {label}"),
            Message::Reply(_, _, Answer::Queued { .. }) => format!("the answer \"still queued\" to {label}"),
            Message::Reply(_, _, Answer::Gone) => format!("the answer \"gone\" to {label}"),
            Message::Granted(_) => format!("the pushed grant of {label}"),
        }
    }

    fn label(&self, id: Id) -> String {
        let latest = self.claims.iter().rposition(|claim| *claim == id).map_or(0, |place| place + 1);
        let number = self.claims[..latest].iter().filter(|claim| claim.client == id.client).count();
        format!("{}{number}", name(id.client))
    }
}

fn belief(who: u8, phase: Phase) -> Option<String> {
    match phase {
        Phase::Held { left: ticks @ 1.. } => Some(format!("{} {}", name(who), left(ticks))),
        _ => None,
    }
}

fn parting(state: &State, who: u8) -> String {
    let name = name(who);
    match state.client(who).phase {
        Phase::Held { left: 0 } => format!("{name} finds its hold lost and releases it"),
        Phase::Held { .. } => format!("{name} releases"),
        Phase::Queued => format!("{name} cancels while queued"),
        Phase::Sent | Phase::Confirming | Phase::Idle => format!("{name} gives up before the answer"),
    }
}

fn left(ticks: u8) -> String {
    match ticks {
        0 => "over".to_owned(),
        1 => "for 1 more tick".to_owned(),
        _ => format!("for {ticks} more ticks"),
    }
}

fn name(who: u8) -> char {
    char::from(b'A' + who)
}
