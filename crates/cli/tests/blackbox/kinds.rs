//! The kinds of lock across processes: sharing, permits, and their queues.

use crate::stage::Stage;

#[test]
fn a_writer_waits_for_all_readers_and_later_readers_wait_for_it() {
    let stage = Stage::new();
    let one = stage.hold("-s");
    let two = stage.hold("-s");
    let writer = stage.line("run --json job").sh("echo writer >> order").start();
    stage.await_waiters(1);
    let reader = stage.line("run --json -s job").sh("echo reader >> order").start();
    stage.await_waiters(2);
    one.finish().is(0);
    two.finish().is(0);
    writer.wait().is(0);
    reader.wait().is(0);
    assert_eq!(stage.read("order"), "writer\nreader\n");
}

#[test]
fn permits_are_handed_over_when_enough_are_free() {
    let stage = Stage::new();
    let two = stage.hold("--permits 2 --of 3");
    let one = stage.hold("--permits 1 --of 3");
    let waits = stage.line("run --json --permits 2 --of 3 job").sh("echo in").start();
    stage.await_waiters(1);
    one.finish().is(0);
    assert_eq!(waits.out(), "", "one permit is not enough");
    two.finish().is(0);
    waits.wait().is(0).prints("in\n");
}

#[test]
fn a_name_in_use_cannot_be_another_kind_of_lock() {
    let stage = Stage::new();
    let _job = stage.hold("");
    stage.line("run -n --of 2 job -- true").run().is(64).says("bandog: lock \"job\" (sqlite:");
}

#[test]
fn a_waiter_in_a_fair_queue_is_not_overtaken_by_one_that_does_not_wait() {
    let stage = Stage::new();
    let job = stage.hold("-s");
    let writer = stage.line("run --fair --json job -- true").start();
    stage.await_waiters(1);
    stage.line("run -n -s job -- true").run().is(75).says("; 1 waiter");
    job.finish().is(0);
    writer.wait().is(0);
}
