//! Two containers that share a volume with a SQLite store: one kernel and one boot id, but processes, names of hosts and networks of their own. And
//! volumes that more than this machine may reach.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::running::until;
use crate::stage::{BANDOG, Line, Stage};

/// How to make something like a container here, if at all: as root, or as the root of a namespace of users.
fn way_in() -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] =
        [&["-mpfuin", "--mount-proc", "--kill-child"], &["-Urmpfuin", "--mount-proc", "--kill-child"]];
    let leads = |way: &&&[&str]| {
        let tried = Command::new("unshare").args(**way).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let way = WAYS.iter().find(leads).copied();
    if way.is_none() {
        eprintln!("!!! SKIPPED: unshare makes no namespaces here");
    }
    way
}

/// A line of bandog as the first process of a container, under the name of a host that all containers have.
fn inside<'a>(stage: &'a Stage, way: &[&str], line: &str) -> Line<'a> {
    let script = format!("hostname container && exec {BANDOG} {line}");
    way.iter().fold(stage.other("unshare"), |line, word| line.arg(*word)).arg("sh").arg("-c").arg(script)
}

#[test]
fn containers_keep_each_other_out_and_hand_over() {
    let Some(way) = way_in() else { return };
    let stage = Stage::new();
    let one = inside(&stage, way, "run job -- sh -c 'echo ready $$; read _; :'").piped().start();
    one.await_out("ready");
    let told = inside(&stage, way, "run -n --json job -- true").run().is(75).event("busy");
    // Both are process 1 of the same name.
    assert_eq!((&told["holders"][0]["host"], &told["holders"][0]["pid"]), (&"container".into(), &1.into()));
    let next = inside(&stage, way, "run job -- echo in").start();
    stage.await_waiters(1);
    assert!(!next.is_over());
    one.finish().is(0).done();
    next.wait().is(0).prints("in\n");
}

#[test]
fn a_container_that_is_killed_blocks_the_other_for_its_lease_at_most() {
    let Some(way) = way_in() else { return };
    let stage = Stage::new();
    let one = inside(&stage, way, "run --lease 2s job -- sh -c 'echo ready; exec sleep 1000'").start();
    one.await_out("ready");
    let next = inside(&stage, way, "run job -- echo in").start();
    stage.await_waiters(1);
    one.signal(Signal::KILL);
    next.wait().is(0).prints("in\n");
}

/// Nothing of the other's processes is looked at: not its number, which is that of one here, and not whether it lives.
#[test]
fn a_ticket_of_a_container_outlives_it_and_is_renewed_in_another() {
    let Some(way) = way_in() else { return };
    let stage = Stage::new();
    let ticket = inside(&stage, way, "acquire --lease 10m job").run().is(0).out;
    inside(&stage, way, "run -n job -- true").run().is(75);
    inside(&stage, way, "renew").fed(&ticket).is(0);
    inside(&stage, way, "release").fed(&ticket).is(0);
    assert!(stage.is_free());
}

/// A real file system in user space, which may be anything behind its number.
#[test]
fn a_volume_that_more_than_this_machine_may_reach_is_refused_by_name() {
    let stage = Stage::new();
    let (behind, volume) = (stage.path("behind"), stage.path("volume"));
    [&behind, &volume].into_iter().for_each(|path| std::fs::create_dir(path).unwrap());
    let mounted = Command::new("bindfs").arg("-f").args([&behind, &volume]).stderr(Stdio::null()).spawn();
    let Ok(mut mounted) = mounted else {
        eprintln!("!!! SKIPPED: no bindfs here");
        return;
    };
    std::fs::write(behind.join("seen"), "").unwrap();
    let is_there = until("the volume is mounted, or cannot be", || {
        if volume.join("seen").exists() { Some(true) } else { mounted.try_wait().unwrap().map(|_| false) }
    });
    if !is_there {
        eprintln!("!!! SKIPPED: bindfs cannot mount here");
        return;
    }
    let store = format!("sqlite:{}", volume.join("locks.db").display());
    let refused = stage.line(&format!("run --store {store} job -- touch ran")).run();
    let doctor = stage.line(&format!("doctor --store {store}")).run();
    let unmounted = Command::new("fusermount").arg("-u").arg(&volume).status();
    assert!(unmounted.unwrap().success());
    mounted.wait().unwrap();
    let refused = refused.is(69).says("is on FUSE, which other machines may reach");
    assert!(!stage.path("ran").exists() && !behind.join("locks.db").exists(), "{refused:?}");
    assert!(doctor.out.contains("FUSE") && doctor.code == Some(1), "{doctor:?}");
}
