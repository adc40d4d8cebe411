//! A path of the checker in words.

use super::message::{Answer, Ask, Message};
use super::model::Action;
use super::state::{Id, Phase, State};

/// What a step from this state to the next is.
pub(super) fn step(state: &State, action: Action) -> String {
    match action {
        Action::Claim(who) => format!("{} claims the lock", name(who)),
        Action::Heartbeat(who) => format!("{} sends a heartbeat", name(who)),
        Action::Renew(who) => format!("{} sends a renewal", name(who)),
        Action::Release(who) => parting(state, who),
        Action::Deliver(place) => format!("{} arrives", message(&state.net[place])),
        Action::Double(place) => format!("{} arrives, a copy is still under way", message(&state.net[place])),
        Action::Lose(place) => format!("{} is lost", message(&state.net[place])),
        Action::Tick => "a tick passes".to_owned(),
    }
}

/// Who believes to hold, who holds in the store, who waits.
pub(super) fn scene(state: &State) -> String {
    let believers: Vec<String> = (0..).zip(&state.clients).filter_map(|(who, client)| belief(who, client.phase)).collect();
    let holder = state.store.holder.map_or_else(
        || "free".to_owned(),
        |hold| format!("{}{} {}", label(hold.id), if hold.unclaimed { " unconfirmed" } else { "" }, left(hold.left)),
    );
    let queue: Vec<String> = state.store.queue.iter().map(|waiter| label(waiter.id)).collect();
    let queue = if queue.is_empty() { String::new() } else { format!(", then {}", queue.join(", ")) };
    let believers = if believers.is_empty() { "nobody".to_owned() } else { believers.join(" and ") };
    format!("store: {holder}{queue}; believes to hold: {believers}")
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

fn message(message: &Message) -> String {
    let label = label(message.id());
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

fn label(id: Id) -> String {
    format!("{}{}", name(id.client), id.seq + 1)
}
