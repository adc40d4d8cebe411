//! A worker that updates shared sets under their locks: read, sleep, write, on and on.
//!
//! It does not look at its guard between read and write. Whoever looks can be stopped right after the look all the same;
//! so this one leaves everything to the resource.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::args::Duty;
use crate::clock::{below, up_to};
use crate::resource::Resource;

use super::client::{Client, Grip};
use super::{listen, say};

const WORK: Duration = Duration::from_millis(10);
const MORE_WORK: Duration = Duration::from_millis(20);

pub(super) fn play(duty: &Duty) -> io::Result<()> {
    let client = Client::connect(duty)?;
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let hands: Vec<_> = (0..duty.hands).map(|_| scope.spawn(|| work(duty, &client, &over, &count))).collect();
        while listen().is_some() {}
        over.store(true, Ordering::Relaxed);
        hands.into_iter().try_for_each(|hand| hand.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    })
}

fn work(duty: &Duty, client: &Client, over: &AtomicBool, count: &AtomicU64) -> io::Result<()> {
    let socket = duty.resource.as_deref().ok_or(io::ErrorKind::InvalidInput)?;
    let mut resource = Resource::open(socket, duty.fenced)?;
    while !over.load(Ordering::Relaxed) {
        let set = below(duty.locks);
        let grip = client.acquire(&format!("set-{set}"))?;
        // Different for every update of every worker.
        let add = duty.number << 32 | count.fetch_add(1, Ordering::Relaxed);
        match update(&mut resource, set, &grip, add)? {
            true => say(format_args!("added {set} {add}")),
            false => say(format_args!("refused {set} {add}")),
        }
        // Lost or not: the next round is another hold.
        grip.release();
    }
    Ok(())
}

fn update(resource: &mut Resource, set: u64, grip: &Grip<'_>, add: u64) -> io::Result<bool> {
    let (key, token) = (format!("set-{set}"), grip.token());
    let Some(state) = resource.read(&key, token)? else { return Ok(false) };
    say(format_args!("inside"));
    std::thread::sleep(WORK + up_to(MORE_WORK));
    resource.write(&key, token, &format!("{state} {add}"), add)
}
