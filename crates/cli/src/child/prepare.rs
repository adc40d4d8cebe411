//! The supervisor is started while the wrapper still waits for its lock; the command only when it has it. Used by the
//! caller through [`Child::prepare`] and [`Prepared::start`].

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child as Process, Command};
use std::time::Duration;

use bandog::Moment;
use rustix::process::{Pid, getpid, set_child_subreaper};
use tokio::net::UnixStream;

use super::SUPERVISE;
use super::happening::Refused;
use super::link::{Link, Listener};
use super::plan::Plan;
use super::signals::{Ignored, Signals};
use super::supervise::Brief;
use super::terminal::Terminal;
use super::tree;
use super::word::{Order, Report};
use super::wrapper::Child;

/// How often a supervisor that does not come is looked after.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a launcher may take to become the command before nobody waits for that any more.
const LAUNCH: Duration = Duration::from_secs(1);

/// A supervisor that waits for the word to start the command. Dropped, it goes away without having run anything.
#[derive(Debug)]
pub struct Prepared {
    listener: Listener,
    supervisor: Process,
    ignored: Ignored,
    env: Vec<(OsString, OsString)>,
    spared: Vec<Pid>,
}

impl Prepared {
    pub(super) fn new(plan: Plan) -> io::Result<Self> {
        let ignored = Ignored::now();
        // Should the supervisor die, what came from the command comes to us. A shell that became this program by exec
        // may have left us children of its own.
        let spared = tree::children(getpid());
        set_child_subreaper(Some(getpid()))?;
        let socket = format!("bandog-{}-{:016x}", getpid(), getrandom::u64().map_err(io::Error::other)?);
        let listener = Listener::bind(&socket)?;
        let brief = Brief { socket, policy: plan.policy, respite: plan.respite };
        let supervisor = Command::new("/proc/self/exe")
            .arg0("bandog")
            .arg(SUPERVISE)
            .args(brief.args())
            .arg(plan.program)
            .args(plan.args)
            // "kill -9 %1" reaches the wrapper's whole group: the supervisor is not in it.
            .process_group(0)
            .spawn()?;
        Ok(Self { listener, supervisor, ignored, env: plan.env, spared })
    }

    /// Adds a variable to the command's environment, such as one known only with the lock.
    pub fn set(&mut self, key: impl Into<OsString>, value: impl Into<OsString>) {
        self.env.push((key.into(), value.into()));
    }

    /// Starts the command, whose lease is good until then. From here on the wrapper's signals are passed on to it.
    ///
    /// # Errors
    /// The supervisor could not be started, could not start the launcher, or died. Nothing of the user's is left
    /// running. A command that does not exist is no error: it ends with 127, and [`Child::refused`] says why.
    pub async fn start(mut self, until: Moment) -> io::Result<Child> {
        let signals = Signals::catch(self.ignored)?;
        let terminal = Terminal::find();
        match self.go(until).await {
            Ok((link, pid)) => {
                let refused = self.refused(pid).await;
                let mut child = Child::new(link, self.supervisor, pid, signals, terminal, self.spared);
                child.refused = refused;
                Ok(child)
            }
            Err(error) => {
                // A supervisor that dies just now may have started the command already.
                tree::kill_and_reap_all(&self.spared);
                Err(error)
            }
        }
    }

    async fn go(&mut self, until: Moment) -> io::Result<(Link<UnixStream>, Pid)> {
        let link = self.supervisor_link().await?;
        link.send_all(&Order::Until(until).to_bytes()).await?;
        for (key, value) in self.env.drain(..) {
            link.send_all(&Order::Set(key, value).to_bytes()).await?;
        }
        link.send_all(&Order::Go.to_bytes()).await?;
        let pid = match report(&link).await? {
            Some(Report::Started(pid)) => Pid::from_raw(pid),
            Some(Report::Failed(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            _ => None,
        };
        Ok((link, pid.ok_or_else(|| io::Error::other("the supervisor died before it started the command"))?))
    }

    /// Why the command could not be run, as its launcher tells; nothing once it runs. A launcher that does neither for long was
    /// stopped, or killed before it came here: then the supervisor tells how it went on.
    async fn refused(&self, launcher: Pid) -> Option<Refused> {
        let told = async {
            let link = self.listener.accept(launcher).await.ok()?;
            let mut packet = vec![0; Refused::LARGEST];
            let length = link.wait(&mut packet).await.ok()?;
            Refused::from_bytes(&packet[..length])
        };
        tokio::time::timeout(LAUNCH, told).await.ok().flatten()
    }

    async fn supervisor_link(&mut self) -> io::Result<Link<UnixStream>> {
        let peer = Pid::from_child(&self.supervisor);
        loop {
            // It has usually come long ago.
            if let Ok(link) = tokio::time::timeout(PATIENCE, self.listener.accept(peer)).await {
                return link;
            }
            if let Some(status) = self.supervisor.try_wait()? {
                return Err(io::Error::other(format!("the supervisor did not start: {status}")));
            }
        }
    }
}

/// The next report; `None` if there will be none. Cancel-safe.
pub(super) async fn report(link: &Link<UnixStream>) -> io::Result<Option<Report>> {
    let mut buffer = [0; 64];
    let length = link.wait(&mut buffer).await?;
    Ok(Report::from_bytes(&buffer[..length]))
}
