//! A notice of every release, for whoever watches a server: off unless the URL says `announce=true`. [`calls`](crate::calls) makes it.
//!
//! It goes out after the release took effect, is not waited for, and may be lost. No lock rests on it.

use std::sync::Arc;

use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Parted, Reply};
use tokio::runtime::Handle;

use crate::config::RedisConfig;
use crate::resp::Command;
use crate::topology::CallConnection;

/// What the channels of notices begin with; the lock's name follows.
pub(crate) fn channels(config: &RedisConfig) -> String {
    format!("{}release:", config.prefix)
}

/// Tells that a hold was released, if this is what the reply says.
pub(crate) fn tell(connection: &Arc<CallConnection>, name: &LockName, op: &Op, reply: &Reply) {
    let config = &connection.shared.server.config;
    let (Op::Release(release), Body::Release(released)) = (op, &reply.body) else { return };
    if !config.announce || released.parted != Parted::Hold {
        return;
    }
    // A connection that was just answered has a runtime to go on with.
    let Ok(runtime) = Handle::try_current() else { return };
    let (channel, notice) = (format!("{}{name}", channels(config)), notice(config, name, release, reply));
    let connection = Arc::clone(connection);
    runtime.spawn(async move {
        drop(connection.ask(Command::new("PUBLISH").arg(channel).arg(notice).into()).await);
    });
}

fn notice(config: &RedisConfig, name: &LockName, release: &bandog_core::op::Release, reply: &Reply) -> String {
    // Names hold no control characters: nothing else needs escaping.
    let key = format!("{}{name}", config.prefix).replace('\\', "\\\\").replace('"', "\\\"");
    format!(r#"{{"lockKey":"{key}","releaseTime":{},"holder":"{}"}}"#, reply.at.millis(), release.id.public())
}
