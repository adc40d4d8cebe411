//! `bandog top`: the locks of a store on the whole screen, the most wanted first, as they change.
//!
//! [`Eyes`] see, as for `watch`; the [`Model`] takes what they see; the [`State`] is that and where the user is; [`draw`] shows
//! it. With `--json` the model is printed instead, once per period, and no terminal is needed.

mod alert;
mod draw;
mod errand;
mod holds;
mod keys;
mod model;
mod rate;
mod state;
mod terminal;
mod update;

use std::io::IsTerminal;
use std::time::Duration;

use bandog::{Clock, Moment};
use tokio::task::JoinSet;

use self::errand::{Done, break_holds, show};
use self::keys::action;
use self::model::Model;
use self::state::{Mode, State};
use self::terminal::{Input, Taken, failed, input};
use self::update::Wish;
use crate::args::Top;
use crate::connect::user;
use crate::entry::wall_micros;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::screen::{Out, Screen};
use crate::settings::Settings;
use crate::signals::Interrupts;
use crate::watch::{Event, Eyes, Report, end};

/// For what is still under way when the user quits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Pictures for notices come no faster.
const BLINK: Duration = Duration::from_millis(50);

pub(crate) async fn top(args: &Top, settings: &Settings) -> Result<Exit, Failure> {
    if !args.store.json && !std::io::stdout().is_terminal() {
        let text = "top draws on a terminal, and standard output is none: use bandog ls for a list, bandog watch for what \
                    happens, or bandog top --json for snapshots";
        return Err(Failure::new("no_terminal", Exit::Usage, text));
    }
    let mut interrupts = Interrupts::new();
    let pattern = names::pattern(&args.pattern);
    let eyes = Eyes::open(&args.store, settings, &user("top"), (&pattern, &args.looks)).await?;
    let ends = async {
        tokio::select! {
            _ = interrupts.next() => {}
            () = end(args.looks.lasting) => {}
        }
    };
    let mut view = View::new(args, eyes, &pattern);
    let shown = async { if args.store.json { view.print().await } else { view.show().await } };
    tokio::select! {
        biased;
        result = shown => result?,
        () = ends => {}
    }
    Ok(Exit::Fine)
}

struct View<'a> {
    args: &'a Top,
    eyes: Eyes,
    state: State,
    clock: Clock,
    /// What happened since the last picture.
    pending: Vec<Event>,
}

impl<'a> View<'a> {
    fn new(args: &'a Top, eyes: Eyes, pattern: &str) -> Self {
        let clock = Clock::system();
        let store = eyes.locks().health().store;
        let model = Model::new(store, pattern, args.alerts, clock.now());
        let state = State::new(Screen::stdout(), model, clock.now());
        let mut view = Self { args, eyes, state, clock, pending: Vec::new() };
        view.take(Vec::new());
        view
    }

    /// Puts what the eyes have seen into the state.
    fn take(&mut self, events: Vec<Event>) {
        let (state, lookout) = (&mut self.state, &self.eyes.lookout);
        state.now = self.clock.now();
        let every = humantime::format_duration(self.args.looks.every).to_string();
        state.model.looks = self.eyes.ears.brief(&every);
        (state.model.beyond, state.model.unread) = (lookout.beyond, lookout.unread);
        state.model.see(lookout.sights(), events, (state.now, wall_micros()));
        state.settle();
    }

    fn report(&mut self, report: Report) -> Vec<Event> {
        let soon = self.clock.now().since(self.state.now) < BLINK;
        match report {
            // Many notices make one picture; the next look shows the last of them.
            Report::Heard(events) if soon => {
                self.pending.extend(events.iter().cloned());
                events
            }
            Report::Looked(events) | Report::Heard(events) => {
                self.state.model.trouble = None;
                self.pending.extend(events.iter().cloned());
                let pending = std::mem::take(&mut self.pending);
                self.take(pending);
                events
            }
            Report::Unanswered(error) => {
                self.state.model.trouble = Some(error.to_string());
                Vec::new()
            }
            Report::Hearing => {
                self.take(Vec::new());
                Vec::new()
            }
        }
    }

    /// One snapshot per look, until somebody ends it.
    async fn print(&mut self) -> Result<(), Failure> {
        let (mut out, mut events) = (Out::new(), Vec::new());
        loop {
            let now = (self.clock.now(), wall_micros());
            out.json(&self.state.model.json(&events, self.args.looks.every, now))?;
            out.flush()?;
            events.clear();
            loop {
                let report = self.eyes.next().await;
                let is_look = matches!(report, Report::Looked(_) | Report::Unanswered(_));
                events.extend(self.report(report));
                if is_look {
                    break;
                }
            }
        }
    }

    /// Draws until the user quits.
    async fn show(&mut self) -> Result<(), Failure> {
        let mut terminal = Taken::new()?;
        let mut input = input();
        let mut errands = JoinSet::new();
        loop {
            terminal.0.draw(|frame| draw::draw(frame, &self.state)).map_err(|error| failed(&error))?;
            let fading = self.state.message.as_ref().and_then(|message| message.until);
            let wish = tokio::select! {
                given = input.recv() => match given {
                    Some(Input::Key(key)) => action(&self.state.mode, key).and_then(|action| self.state.update(action)),
                    Some(Input::Resized) => None,
                    // Nobody is there to press a key.
                    None => Some(Wish::Quit),
                },
                Some(Ok(done)) = errands.join_next(), if !errands.is_empty() => {
                    self.done(done);
                    None
                }
                () = tokio::time::sleep(fading.unwrap_or(Moment::ZERO).since(self.clock.now())), if fading.is_some() => None,
                // Other locks are looked at once, though nothing changes after that.
                report = self.eyes.next(), if !self.state.paused || self.eyes.due => {
                    self.report(report);
                    self.look_closer()
                }
            };
            self.state.fade(self.clock.now());
            match wish {
                None => {}
                Some(Wish::Quit) => break,
                Some(Wish::Filter(pattern)) => self.turn_to(&pattern),
                Some(Wish::Show(lock)) => drop(errands.spawn(show(self.eyes.locks(), lock))),
                Some(Wish::Break(breaking)) => drop(errands.spawn(break_holds(self.eyes.locks(), breaking))),
            }
        }
        drop(terminal);
        // A lock that was to be broken is broken, though the screen is gone.
        let rest = async { while errands.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(PATIENCE, rest).await;
        Ok(())
    }

    /// A lock that is shown is asked for again after every look.
    fn look_closer(&self) -> Option<Wish> {
        let Mode::Details(details) = &self.state.mode else { return None };
        Some(Wish::Show(details.lock.clone()))
    }

    fn done(&mut self, done: Done) {
        match (done, &mut self.state.mode) {
            (Done::Shown(lock, info), Mode::Details(details)) if details.lock == lock => details.info = info,
            (Done::Shown(..), _) => {}
            (Done::Said(ink, text), _) => self.state.say(ink, &text),
        }
    }

    fn turn_to(&mut self, pattern: &str) {
        self.eyes.turn_to(pattern);
        pattern.clone_into(&mut self.state.model.pattern);
    }
}
