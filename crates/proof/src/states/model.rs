//! The world as the checker sees it: which steps are possible, and where each leads.

use stateright::{Model, Property};

use super::law::Law;
use super::promise;
use super::state::{Phase, State};

/// One lock, one store, a few clients.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    /// Its rules and bounds.
    pub law: Law,
    /// Whether clients may change names from state to state; a story for people needs them to stay.
    pub alike: bool,
    /// The only property to check, if not all.
    pub only: Option<&'static str>,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// A client claims the lock.
    Claim(u8),
    /// A waiter says that it is alive.
    Heartbeat(u8),
    /// A holder renews.
    Renew(u8),
    /// A client releases, cancels, or gives up on an answer.
    Release(u8),
    /// The message at this place arrives.
    Deliver(usize),
    /// It arrives, and a copy stays in flight.
    Double(usize),
    /// It is lost.
    Lose(usize),
    /// Time passes.
    Tick,
}

impl Model for Lock {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for who in 0..self.law.bounds.clients {
            match state.client(who).phase {
                Phase::Idle => actions.push(Action::Claim(who)),
                Phase::Sent | Phase::Confirming | Phase::Held { left: 0 } => actions.push(Action::Release(who)),
                Phase::Queued => actions.extend([Action::Heartbeat(who), Action::Release(who)]),
                Phase::Held { .. } => actions.extend([Action::Renew(who), Action::Release(who)]),
            }
        }
        // Copies of one message have one future.
        let places = (0..state.net.len()).filter(|place| *place == 0 || state.net[place - 1] != state.net[*place]);
        actions.extend(places.flat_map(|place| [Action::Deliver(place), Action::Double(place), Action::Lose(place)]));
        actions.push(Action::Tick);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let law = &self.law;
        match action {
            Action::Claim(who) => state.ask(law, who).then_some(())?,
            Action::Heartbeat(who) => state.beat(law, who),
            Action::Renew(who) => state.keep(who),
            Action::Release(who) => state.part(who),
            Action::Deliver(place) => {
                let message = state.net.remove(place);
                state.arrive(law, message);
            }
            Action::Double(place) => state.arrive(law, last.net[place]),
            Action::Lose(place) => drop(state.net.remove(place)),
            Action::Tick => state.tick(law),
        }
        state.normalise();
        if state.net.len() > law.bounds.flight || state == *last {
            return None;
        }
        if self.alike {
            state.reorder(law.bounds.clients);
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let all = promise::properties().into_iter();
        all.filter(|property| self.only.is_none_or(|only| only == property.name)).collect()
    }
}
