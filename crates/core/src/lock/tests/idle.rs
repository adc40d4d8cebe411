//! A lock that is held and idle: the active state is put away, and nothing is forgotten with it.

use super::*;

fn held_in_peace() -> (Lock, HoldKey) {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.news();
    lock.machine.tidy();
    (lock, hold_key)
}

#[test]
fn active_state_is_put_away_and_reading_does_not_bring_it_back() {
    let (mut lock, hold_key) = held_in_peace();
    assert!(lock.machine.active.is_quiet());
    lock.wait(1);
    assert_eq!((lock.actions().len(), lock.news().len()), (0, 0));
    assert!(matches!(lock.machine.state(lock.now, hold_key), Some(HoldState::Held { .. })));
    assert!(lock.machine.active.is_quiet());
}

#[test]
fn waiter_id_from_before_is_not_taken_for_a_later_one() {
    let mut lock = Lock::new();
    let early = lock.ask(writer());
    lock.actions();
    lock.answer("acquire #1", granted(10));
    let hold_key = lock.hold_key(early);
    lock.news();
    lock.machine.tidy();
    assert!(lock.machine.active.is_quiet());
    let late = lock.ask(writer());
    assert_eq!((early.index(), early == late), (late.index(), false), "at the same place");
    lock.cancel(early);
    lock.release(hold_key);
    assert_eq!(lock.pick(late), "granted 10.1", "nobody has cancelled this one");
}

#[test]
fn waiter_in_another_process_is_not_forgotten() {
    let (mut lock, hold_key) = Lock::held(writer());
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.news();
    lock.machine.tidy();
    lock.ask(writer());
    lock.wait(10);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}
