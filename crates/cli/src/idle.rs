//! `bandog wait`: until nobody holds a lock, without taking it or standing in its line.

use std::time::Duration;

use bandog::{Clock, Locks, Moment};

use crate::args::Wait;
use crate::connect::{Label, connect_within};
use crate::entry::PAUSES;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::note::Note;
use crate::say::Say;
use crate::scene::Scene;
use crate::settings::Settings;
use crate::signals::Interrupts;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// A wait shorter than this is not worth a word.
const PATIENCE: Duration = Duration::from_millis(250);
/// The longest wait without a look, however long one takes.
const LONGEST: Duration = Duration::from_secs(5);

pub(crate) async fn wait(args: &Wait, settings: &Settings, say: &Say) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new();
    let store = (&args.store, settings, Label::Usual("wait"));
    let told = (args.name.as_str(), say);
    let locks = connect_within(args.patience.wait_for_store, store, told, &mut interrupts).await?;
    tokio::select! {
        biased;
        signal = interrupts.next() => {
            say.note(&args.name, &Note::Interrupted { signal });
            Err(Failure::said(Exit::Interrupted(signal)))
        }
        ended = look(&locks, args, say) => ended,
    }
}

async fn look(locks: &Locks, args: &Wait, say: &Say) -> Result<Exit, Failure> {
    let began = now();
    let limit = if args.nonblock { Some(Duration::ZERO) } else { args.wait };
    let mut told: Option<Scene> = None;
    loop {
        let asked = now();
        let found = locks.inspect(&args.name).await.map_err(|error| Failure::of(error.kind(), &error))?;
        let waited = now().since(began);
        let Some(info) = found.filter(|info| !info.record.holders.is_empty()) else {
            say.note(&args.name, &Note::Free { waited });
            return Ok(Exit::Fine);
        };
        let scene = Scene::as_seen(&info.record);
        if limit.is_some_and(|limit| waited >= limit) {
            let waited = limit.filter(|limit| !limit.is_zero()).map(|_| waited);
            say.note(&args.name, &Note::Busy { scene, waited });
            return Ok(Exit::Busy(args.conflict_exit_code));
        }
        if waited >= PATIENCE && told.as_ref().is_none_or(|told| scene.has_changed(told)) {
            say.note(&args.name, &Note::Waiting { scene: scene.clone(), waited });
            told = Some(scene);
        }
        let pause = (now().since(asked) * PAUSES).clamp(LOOK, LONGEST);
        let left = limit.map_or(pause, |limit| limit.saturating_sub(waited));
        tokio::time::sleep(pause.min(left)).await;
    }
}

fn now() -> Moment {
    Clock::system().now()
}
