//! What must hold in every state, and what must be reachable so that the model is not empty.

use stateright::Property;

use super::fair;
use super::message::{Ask, Message};
use super::model::Lock;
use super::state::{Breach, Phase, State};

/// Exclusion of belief.
pub(super) const ONE_BELIEVER: &str = "no two clients believe to hold at one tick";
/// Why exclusion of belief holds: deadlines lie inside leases.
pub(super) const INSIDE_LEASE: &str = "a belief ends no later than the lease in the store";
/// Fencing.
pub(super) const TOKENS: &str = "tokens grow strictly in grant order";
/// Queued, granted, done.
pub(super) const ONE_WAY: &str = "an ended id is never queued or granted again";
/// First come, first served.
pub(super) const ORDER: &str = "no grant passes a live waiter";
/// Work conservation.
pub(super) const NO_IDLE_LOCK: &str = "nobody waits for a free lock";
/// A dead waiter blocks for the claim window.
pub(super) const WINDOW: &str = "an unconfirmed grant ends within the claim window";
/// Bounded liveness.
pub(super) const NOBODY_FORGOTTEN: &str = "once the network behaves every waiter is served and the lock ends up free";

/// Everything to check: promises first, then what must be reachable.
pub(super) fn properties() -> Vec<Property<Lock>> {
    let mut all = promises();
    all.extend(sights());
    all
}

fn promises() -> Vec<Property<Lock>> {
    vec![
        Property::<Lock>::always(ONE_BELIEVER, |_, state| believers(state) <= 1),
        Property::<Lock>::always(INSIDE_LEASE, |_, state| inside_lease(state)),
        Property::<Lock>::always(TOKENS, |_, state| state.breach != Some(Breach::Token)),
        Property::<Lock>::always(ONE_WAY, |_, state| one_way(state)),
        Property::<Lock>::always(ORDER, |_, state| state.breach != Some(Breach::Order)),
        Property::<Lock>::always(NO_IDLE_LOCK, |_, state| state.store.holder.is_some() || state.store.queue.is_empty()),
        Property::<Lock>::always(WINDOW, |lock, state| {
            state.store.holder.is_none_or(|hold| hold.left == 0 || hold.waited < lock.law.bounds.window)
        }),
        // Any message can be lost, so every state leads to one with an empty network: checking those is enough.
        Property::<Lock>::always(NOBODY_FORGOTTEN, |lock, state| {
            !state.net.is_empty() || fair::serves(&lock.law, state)
        }),
    ]
}

fn sights() -> Vec<Property<Lock>> {
    vec![
        Property::<Lock>::sometimes("a lock is handed over", |_, state| unclaimed(state, |left| left > 0)),
        Property::<Lock>::sometimes("a claim window lapses", |_, state| unclaimed(state, |left| left == 0)),
        Property::<Lock>::sometimes("a lease lapses", |_, state| {
            state.store.holder.is_some_and(|hold| hold.left == 0 && !hold.unclaimed)
        }),
        Property::<Lock>::sometimes("a cancel races a grant", |_, state| {
            let release = |id| state.net.iter().any(|it| matches!(*it, Message::Release(of, _) if of == id));
            state.store.holder.is_some_and(|hold| hold.left > 0 && hold.unclaimed && release(hold.id))
        }),
        Property::<Lock>::sometimes("a push may overtake the reply", |_, state| {
            let reply = |id| state.net.iter().any(|it| matches!(*it, Message::Reply(Ask::Claim, of, _) if of == id));
            state.net.iter().any(|it| matches!(*it, Message::Granted(id) if reply(id)))
        }),
        Property::<Lock>::sometimes("a claim arrives after its release", |_, state| {
            state.net.iter().any(|it| it.is_claim() && state.over.contains(&it.id()))
        }),
        Property::<Lock>::sometimes("a waiter dies", |_, state| {
            state.store.queue.iter().any(|waiter| !state.store.lives(waiter))
        }),
        Property::<Lock>::sometimes("a grant is confirmed before use", |_, state| {
            state.clients.iter().any(|client| client.phase == Phase::Confirming)
        }),
        Property::<Lock>::sometimes("everybody else waits for one", |lock, state| {
            state.store.queue.len() + 1 == usize::from(lock.law.bounds.clients) && believers(state) == 1
        }),
    ]
}

fn believers(state: &State) -> usize {
    state.clients.iter().filter(|client| client.believes()).count()
}

fn inside_lease(state: &State) -> bool {
    (0..).zip(&state.clients).filter(|(_, client)| client.believes()).all(|(who, client)| {
        let Phase::Held { left } = client.phase else { return true };
        state.store.holder.is_some_and(|hold| hold.id == state.current(who) && hold.left >= left)
    })
}

fn one_way(state: &State) -> bool {
    let waits = |id| state.store.queue.iter().any(|waiter| waiter.id == id);
    let holds = |id| state.store.holder.is_some_and(|hold| hold.id == id && hold.left > 0);
    !state.over.iter().any(|id| waits(*id) || holds(*id))
}

fn unclaimed(state: &State, left: fn(u8) -> bool) -> bool {
    state.store.holder.is_some_and(|hold| hold.unclaimed && left(hold.left))
}
