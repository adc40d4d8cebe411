//! How releases are heard between looks: by notices, where the store has them and they are on.

use bandog_redis::{Notice, Notices, RedisConfig};

/// What can be heard.
#[derive(Debug)]
pub(crate) enum Ears {
    /// The store has no notices, or they are off.
    None,
    /// Notices are on, but cannot be heard at present.
    Deaf(RedisConfig, String),
    Open(RedisConfig, Notices),
}

impl Ears {
    /// Listens, if the URL of the store says `announce=true`.
    pub(crate) async fn open(url: &str) -> Self {
        // Whatever is wrong with it, whoever connects says so.
        let Ok((config, _)) = RedisConfig::from_url(url) else { return Self::None };
        Self::listen(config).await
    }

    async fn listen(config: RedisConfig) -> Self {
        match Notices::listen(&config).await {
            Ok(Some(notices)) => Self::Open(config, notices),
            Ok(None) => Self::None,
            Err(error) => Self::Deaf(config, error.to_string()),
        }
    }

    /// Tries again if it was deaf, and says whether that changed anything.
    pub(crate) async fn try_again(&mut self) -> bool {
        let Self::Deaf(config, _) = self else { return false };
        *self = Self::listen(config.clone()).await;
        matches!(self, Self::Open(..))
    }

    /// The next notice; `None` once when nothing is heard any more, and never without notices.
    pub(crate) async fn next(&mut self) -> Option<Notice> {
        let Self::Open(config, notices) = self else { return std::future::pending().await };
        let notice = notices.next().await;
        if notice.is_none() {
            *self = Self::Deaf(config.clone(), "the connection is gone".to_owned());
        }
        notice
    }

    pub(crate) fn word(&self) -> &'static str {
        if matches!(self, Self::Open(..)) { "notices" } else { "looks" }
    }

    /// How the store is looked at, for people.
    pub(crate) fn words(&self, every: &str) -> String {
        match self {
            Self::Open(..) => format!("by notices (announce is on) and a look every {every}"),
            Self::Deaf(_, why) => format!("by a look every {every}; notices are on but cannot be heard: {why}"),
            Self::None => format!("by a look every {every}: what comes and goes in between is not seen"),
        }
    }

    /// The same where there is little room.
    pub(crate) fn brief(&self, every: &str) -> String {
        match self {
            Self::Open(..) => format!("notices, and a look every {every}"),
            Self::Deaf(..) => format!("a look every {every}; notices are on but cannot be heard"),
            Self::None => format!("a look every {every}"),
        }
    }

    /// What would show more.
    pub(crate) fn advice(&self, url: &str) -> Option<&'static str> {
        let has_notices = url.starts_with("redis");
        (matches!(self, Self::None) && has_notices)
            .then_some("set announce=true in the URL of this command and of the processes to hear of each release")
    }
}
