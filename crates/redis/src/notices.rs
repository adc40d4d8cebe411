//! Hearing the [notices](crate::announce) of releases, for whoever watches a server. No lock rests on them.
//!
//! One connection, subscribed to the pattern of all their channels. Memory is bounded: who listens too slowly misses some.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use bandog_core::holder::PublicId;
use bandog_core::name::LockName;
use bandog_core::store::StoreError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::announce;
use crate::config::RedisConfig;
use crate::resp::{Deadline, Heard, Step};
use crate::topology::{Session, unheard, unreached};
use crate::value::Value;

/// Notices that wait to be taken; more are not kept.
const ROOM: usize = 4_096;

/// A hold was released.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// The lock.
    pub name: LockName,
    /// Who released it, if the notice says so.
    pub holder: Option<PublicId>,
}

impl Notice {
    /// A notice as it would be heard, for tests of whoever listens.
    ///
    /// ```
    /// use bandog_core::name::LockName;
    /// let notice = bandog_redis::Notice::new(LockName::new("job")?, None);
    /// assert_eq!(notice.name.as_str(), "job");
    /// # Ok::<(), bandog_core::name::NameError>(())
    /// ```
    pub fn new(name: LockName, holder: Option<PublicId>) -> Self {
        Self { name, holder }
    }
}

/// Notices of releases, as clients with `announce=true` tell them. Some may be missed: it is for watching.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use bandog_redis::{Notices, RedisConfig};
/// let (config, _) = RedisConfig::from_url("redis://127.0.0.1:6379?announce=true")?;
/// if let Some(mut notices) = Notices::listen(&config).await? {
///     while let Some(notice) = notices.next().await {
///         println!("{} was released", notice.name);
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Notices {
    heard: Receiver<Notice>,
    /// Dropped, it would be closed.
    _connection: Session,
}

impl Notices {
    /// Listens from now on; `None` if the configuration does not say `announce=true`.
    ///
    /// # Errors
    /// When the server cannot be reached or this user may not subscribe: the message then has the ACL rule to add.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn listen(config: &RedisConfig) -> Result<Option<Self>, StoreError> {
        if !config.announce {
            return Ok(None);
        }
        Self::subscribe(config).await.map(Some)
    }

    async fn subscribe(config: &RedisConfig) -> Result<Self, StoreError> {
        let (sender, heard) = channel(ROOM);
        let (start, sender) = (announce::channels(config), Mutex::new(Some(sender)));
        let handler = Box::new(move |heard| hear(&start, &sender, heard));
        let endpoint = config.endpoint()?;
        let deadline = Deadline::within(config.connect_timeout);
        let session =
            Session::plain(&endpoint, Some(handler), &deadline).await.map_err(|error| unreached(config, error))?;
        let pattern = [&config.keys().glob_start()[..], b"release:*"].concat();
        let subscribed = deadline.step(Step::Subscribe, session.subscribe_to_pattern(pattern)).await;
        subscribed.map_err(|error| unheard(config, error))?;
        Ok(Self { heard, _connection: session })
    }

    /// The next notice; `None` when the connection is gone and nothing more will come.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub async fn next(&mut self) -> Option<Notice> {
        self.heard.recv().await
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("waiting", &self.heard.len()).finish_non_exhaustive()
    }
}

/// Whether it is a notice, or the end.
fn hear(start: &str, sender: &Mutex<Option<Sender<Notice>>>, heard: Heard) -> bool {
    let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
    match heard {
        // Without a sender the receiver is told that it is over.
        Heard::Gone => *sender = None,
        Heard::Matched(data) => {
            let Some(notice) = read(start, data) else { return false };
            // Full, or nobody there: a notice may be lost.
            sender.as_ref().map(|sender| sender.try_send(notice));
        }
        Heard::Message(_) => return false,
    }
    true
}

pub(crate) fn read(start: &str, data: Vec<Value>) -> Option<Notice> {
    let [_, Value::Bytes(channel), Value::Bytes(text)] = &data[..] else { return None };
    let name = std::str::from_utf8(channel).ok()?.strip_prefix(start)?;
    Some(Notice { name: LockName::new(name).ok()?, holder: holder(text) })
}

/// The last field of a notice; see [`announce`].
fn holder(text: &[u8]) -> Option<PublicId> {
    let (_, holder) = std::str::from_utf8(text).ok()?.rsplit_once(r#""holder":""#)?;
    holder.split('"').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(channel: &str, text: &str) -> Option<Notice> {
        read("lock:release:", ["lock:release:*", channel, text].map(|part| Value::Bytes(part.into())).to_vec())
    }

    #[test]
    fn a_notice_names_the_lock_and_its_holder() {
        let id = PublicId::from_bits(77 << 32);
        let text = format!(r#"{{"lockKey":"lock:a","releaseTime":1,"holder":"{id}"}}"#);
        let notice = message("lock:release:a:b", &text).unwrap();
        assert_eq!((notice.name.as_str(), notice.holder), ("a:b", Some(id)));
    }

    #[test]
    fn foreign_messages_on_the_notice_channel_are_ignored() {
        assert_eq!(message("lock:release:a", "hello").unwrap().holder, None);
        assert_eq!(message("lock:release:a", r#"{"holder":"??"}"#).unwrap().holder, None);
        assert_eq!(message("lock:release:", "x"), None);
        assert_eq!(message("lock:release:a\nb", "x"), None);
        assert_eq!(message("elsewhere:a", "x"), None);
    }
}
