//! How long an opening may take, and the step at which it ended. Whoever opens a connection asks all its questions through here.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Broken;

/// When an opening must be over, with all its steps.
#[derive(Debug)]
pub(crate) struct Deadline {
    limit: Duration,
    until: Instant,
}

/// A step of an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Connect,
    Tls,
    Hello,
    Select,
    Questions,
    Scripts,
    Subscribe,
    Permissions,
}

/// An opening that failed: why, and at which step.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why} while {step}")]
pub(crate) struct Unopened {
    #[source]
    pub(crate) why: Broken,
    pub(crate) step: Step,
}

impl Deadline {
    /// So much time from now on.
    pub(crate) fn within(limit: Duration) -> Self {
        // A limit beyond what the clock can show is none.
        let now = Instant::now();
        let until = now.checked_add(limit).unwrap_or(now + Duration::from_secs(86_400 * 365));
        Self { limit, until }
    }

    /// Does one step of the opening, if it is done in time.
    pub(crate) async fn step<T>(
        &self,
        step: Step,
        work: impl Future<Output = Result<T, Broken>>,
    ) -> Result<T, Unopened> {
        let done = timeout_at(self.until, work).await.unwrap_or(Err(Broken::Silent(self.limit)));
        done.map_err(|why| Unopened { why, step })
    }
}

impl Step {
    /// What is done in it, as an error says it.
    const fn words(self) -> &'static str {
        match self {
            Self::Connect => "connecting",
            Self::Tls => "agreeing on TLS",
            Self::Hello => "logging in (HELLO)",
            Self::Select => "choosing the database (SELECT)",
            Self::Questions => "asking what it is (INFO, TIME)",
            Self::Scripts => "loading the scripts (SCRIPT LOAD)",
            Self::Subscribe => "subscribing (SUBSCRIBE)",
            Self::Permissions => "trying what this user may do (EVAL, PUBLISH, SCAN)",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
