//! What is played, given as words `key=value`.

use std::path::PathBuf;
use std::time::Duration;

/// So many play for nothing at most.
const WARM_TASKS: usize = 8;

/// One game.
#[derive(Debug, Clone)]
pub(crate) struct Game {
    pub(crate) peer: String,
    /// `pairs`, `shared`, `readers`, `reenter` or `hold`.
    pub(crate) play: String,
    pub(crate) url: String,
    pub(crate) port: u16,
    pub(crate) name: String,
    pub(crate) process: usize,
    /// How many there are.
    pub(crate) processes: usize,
    pub(crate) tasks: usize,
    pub(crate) length: Duration,
    /// How long each hold lasts.
    pub(crate) section: Duration,
    /// How long after leaving somebody asks again.
    pub(crate) pause: Duration,
    /// Between the first asks of two tasks.
    pub(crate) step: Duration,
    /// How long to play for nothing first.
    pub(crate) warm: Duration,
    /// Where the stamps go; none are kept without it.
    pub(crate) stamps: Option<PathBuf>,
}

impl Game {
    pub(crate) fn from_args() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let find = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let text = |key: &str| find(key).unwrap_or_default().to_owned();
        let number = |key: &str| find(key).and_then(|value| value.parse::<u64>().ok()).unwrap_or_default();
        Self {
            peer: text("peer"),
            play: text("play"),
            url: text("url"),
            port: number("port") as u16,
            name: text("name"),
            process: number("process") as usize,
            processes: number("processes") as usize,
            tasks: number("tasks") as usize,
            length: Duration::from_millis(number("ms")),
            section: Duration::from_micros(number("section_us")),
            pause: Duration::from_micros(number("pause_us")),
            step: Duration::from_micros(number("step_us")),
            warm: Duration::from_millis(number("warm_ms")),
            stamps: find("stamps").map(PathBuf::from),
        }
    }

    /// The name of a task's lock: one for all, or one for each.
    pub(crate) fn name_of(&self, task: usize) -> String {
        match self.play.as_str() {
            "pairs" | "hold" => format!("{}:{}:{task}", self.name, self.process),
            _ => self.name.clone(),
        }
    }

    /// The game that is played for nothing first: on other names, by a few, and without a rest.
    pub(crate) fn warm_up(&self) -> Self {
        Self {
            name: "warm".to_owned(),
            tasks: self.tasks.min(WARM_TASKS),
            length: self.warm,
            section: Duration::ZERO,
            pause: Duration::ZERO,
            ..self.clone()
        }
    }
}
