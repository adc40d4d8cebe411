//! A worker that does what it is told, with one lock at a time: take, look, write, give.
//!
//! What it is told while it is stopped is the first thing it does when it goes on.

use std::io;
use std::time::Duration;

use crate::args::{Break, Duty};
use crate::clock::nanos;
use crate::crew::wrong;
use crate::resource::Resource;

use super::client::{Client, Grip};
use super::{listen, say};

/// Beyond any slack that a run is given.
const TOO_LATE: Duration = Duration::from_secs(3);

struct Puppet<'a> {
    client: &'a Client,
    resource: Option<Resource>,
    grip: Option<Grip<'a>>,
    broken: Option<Break>,
    /// What it saw when it got the lock: a broken one does not look again.
    seen: bool,
}

pub(super) fn play(duty: &Duty) -> io::Result<()> {
    let client = Client::connect(duty)?;
    let resource = duty.resource.as_deref().map(|socket| Resource::open(socket, duty.fenced)).transpose()?;
    let mut puppet = Puppet { client: &client, resource, grip: None, broken: duty.broken, seen: false };
    say(format_args!("ready"));
    while let Some(line) = listen() {
        let words: Vec<&str> = line.split(' ').collect();
        puppet.obey(&words)?;
    }
    Ok(())
}

impl Puppet<'_> {
    fn obey(&mut self, words: &[&str]) -> io::Result<()> {
        match *words {
            ["take", name] => self.take(name),
            ["look"] => self.look(),
            ["write", key, add] => self.write(key, add),
            ["give"] => self.give(),
            _ => Err(wrong(format!("told {words:?}"))),
        }
    }

    fn take(&mut self, name: &str) -> io::Result<()> {
        // What is left of a lost hold goes first.
        drop(self.grip.take());
        let grip = self.client.acquire(name)?;
        if self.broken == Some(Break::Late) {
            std::thread::sleep(TOO_LATE);
        }
        let at = nanos();
        self.seen = grip.is_held();
        say(format_args!("held {} {at}", grip.token()));
        self.grip = Some(grip);
        Ok(())
    }

    fn look(&self) -> io::Result<()> {
        let held = if self.broken == Some(Break::Blind) { self.seen } else { self.grip()?.is_held() };
        say(format_args!("looked {}", u8::from(held)));
        Ok(())
    }

    fn write(&mut self, key: &str, add: &str) -> io::Result<()> {
        let token = self.grip()?.token();
        let resource = self.resource.as_mut().ok_or_else(|| wrong("told to write without a resource"))?;
        let accepted = resource.write(key, token, add, add.parse().map_err(io::Error::other)?)?;
        say(format_args!("wrote {}", u8::from(accepted)));
        Ok(())
    }

    fn give(&mut self) -> io::Result<()> {
        let grip = self.grip.take().ok_or_else(|| wrong("told to give what it has not"))?;
        let from = nanos();
        let held = grip.release();
        say(format_args!("gave {from} {}", u8::from(held)));
        Ok(())
    }

    fn grip(&self) -> io::Result<&Grip<'_>> {
        self.grip.as_ref().ok_or_else(|| wrong("told to use what it has not"))
    }
}
