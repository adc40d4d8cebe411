//! A local batch: what a process that was handed the lock knows of waiters elsewhere, and when its lease is confirmed.

use super::*;

#[test]
fn a_pushed_grant_tells_who_waits_behind_it() {
    for (line, passed) in [(0, false), (1, false), (1, true)]
        .map(|(waiters, fair)| Line { waiters, fair })
        .into_iter()
        .zip([true, false, false])
    {
        let (mut lock, first) = Lock::queued(writer());
        lock.ask(writer());
        lock.push_before(1, 11, line);
        let hold_key = lock.hold_key(first);
        lock.wait(if line.fair { 0 } else { 10 });
        lock.release(hold_key);
        assert_eq!(lock.actions().is_empty(), passed, "{line:?}");
    }
}

/// A local batch after a pushed grant: holds of these lengths, and what is sent at each pass.
fn batch_of(sections: &[u64]) -> Vec<Vec<String>> {
    let (mut lock, first) = Lock::queued(writer());
    let neighbours: Vec<WaiterId> = sections.iter().map(|_| lock.ask(writer())).collect();
    lock.ask(writer());
    lock.push_before(1, 11, SOMEBODY);
    let mut hold_key = lock.hold_key(first);
    let pass = |(section, next): (&u64, WaiterId)| {
        lock.wait(*section);
        lock.release(hold_key);
        hold_key = lock.hold_key(next);
        lock.actions()
    };
    sections.iter().zip(neighbours).map(pass).collect()
}

#[test]
fn pushed_grant_is_confirmed_when_its_batch_is_about_to_end() {
    let nothing = Vec::<String>::new;
    assert_eq!(batch_of(&[3, 3, 3]), [nothing(), nothing(), vec!["renew #1".to_owned()]], "12 ms are too long");
    assert_eq!(batch_of(&[3, 2, 2]), [nothing(), nothing(), nothing()], "9 ms are not");
    let told = batch_of(&[3, 3, 1, 1]);
    assert_eq!(
        told.iter().map(Vec::len).collect::<Vec<_>>(),
        [0, 0, 0, 1],
        "the next hold may be one of the longer ones"
    );
    assert_eq!(batch_of(&[6, 3]), [vec!["renew #1".to_owned()], nothing()], "and once is enough");
}

#[test]
fn hold_from_before_the_batch_does_not_shorten_the_estimate() {
    let (mut lock, first) = Lock::queued(writer());
    let neighbours = [(); 2].map(|()| lock.ask(writer()));
    lock.push(1, 11);
    let mut hold_key = lock.hold_key(first);
    lock.wait(1);
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    for (wait, sent) in [(1, ""), (2, "renew #1")] {
        lock.wait(wait);
        lock.release(hold_key);
        assert_eq!(lock.actions().concat(), sent, "5 ms after the news whoever comes has to queue");
        hold_key = lock.hold_key(neighbours[usize::from(wait == 2)]);
    }
}

#[test]
fn batch_is_renewed_shortly_before_it_ends() {
    for ends_sooner in [false, true] {
        let (mut lock, first) = Lock::queued(writer());
        let next = lock.ask(writer());
        lock.push_before(1, 11, SOMEBODY);
        let hold_key = lock.hold_key(first);
        lock.wait(6);
        lock.release(hold_key);
        let kept = lock.kept();
        let RequestContext::Renew { sent, due, .. } = kept else { panic!("{kept:?}") };
        assert_eq!((sent, due.since(sent)), (lock.now, Duration::from_micros(5_500)), "the next hold takes 6 ms, too");
        let hold_key = lock.hold_key(next);
        if ends_sooner {
            lock.release(hold_key);
        }
        assert_eq!(lock.machine.handle_due(&kept), !ends_sooner);
        assert!(!lock.machine.handle_due(&kept), "once is enough");
    }
}

#[test]
fn a_renewal_that_is_kept_is_not_under_way() {
    let (mut lock, first) = Lock::queued(writer());
    let [second, third] = [(); 2].map(|()| lock.ask(writer()));
    lock.push(1, 11);
    let hold_key = lock.hold_key(first);
    lock.pause(970);
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: false });
    lock.pause(6);
    lock.release(hold_key);
    let kept = lock.kept();
    let hold_key = lock.hold_key(second);
    // Half of the window is over, so the next waiter waits for a confirmation; the renewal that is kept until later is not it.
    lock.pause(3);
    lock.release(hold_key);
    assert_eq!((lock.pick(third).as_str(), lock.actions()), ("waits", vec!["renew #1".to_owned()]));
    assert!(!lock.machine.handle_due(&kept));
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.pick(third), "granted 11.2");
}

#[test]
fn batch_that_ends_with_its_waiters_is_renewed_with_the_last_of_them() {
    let (mut lock, first) = Lock::queued(writer());
    let next = lock.ask(writer());
    lock.push_before(1, 11, SOMEBODY);
    let hold_key = lock.hold_key(first);
    lock.wait(3);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["renew #1"], "whoever comes in half the time has to queue");
    assert!(lock.pick(next).starts_with("granted"));
}

#[test]
fn a_renewal_that_is_under_way_confirms_what_is_left_late() {
    let (mut lock, first) = Lock::queued(writer());
    let [second, third] = [(); 2].map(|()| lock.ask(writer()));
    lock.push_before(1, 11, SOMEBODY);
    let hold_key = lock.hold_key(first);
    lock.wait(6);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["renew #1"]);
    let hold_key = lock.hold_key(second);
    lock.release(hold_key);
    assert_eq!((lock.pick(third).as_str(), lock.actions().len()), ("granted 11.2", 0), "passed on before its answer");
    lock.answer("renew #1", renewed_with(11, SOMEBODY));
    assert!(lock.actions().is_empty());

    // Too little of the window is left.
    let late = || {
        let (mut lock, first) = Lock::queued(writer());
        let next = lock.ask(writer());
        lock.push(1, 11);
        let hold_key = lock.hold_key(first);
        lock.wait(1_000);
        assert_eq!(lock.actions(), ["renew #1"], "by its timer");
        lock.release(hold_key);
        assert_eq!((lock.actions(), lock.pick(next).as_str()), (Vec::new(), "waits"), "one is under way");
        (lock, next)
    };
    let (mut lock, next) = late();
    lock.answer("renew #1", renewed(11));
    assert_eq!(lock.pick(next), "granted 11.1");
    let (mut lock, _) = late();
    lock.answer("renew #1", not_holder());
    assert_eq!(lock.actions(), ["acquire #2"]);
    let (mut lock, _) = late();
    lock.lose_answer("renew #1");
    assert_eq!(lock.actions(), ["release #1"]);
}

#[test]
fn pushed_grant_does_not_hide_a_fair_waiter() {
    let (mut lock, first) = Lock::queued(writer());
    lock.ask(writer());
    // The notice was sent after the grant, and arrives before it.
    lock.machine.handle_push(lock.now, RUN, News::Waiting { fair: true });
    lock.push_before(1, 11, SOMEBODY);
    let hold_key = lock.hold_key(first);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1"]);
}

/// A hold whose push came before the answer to its claim, with a waiter in line.
fn overtaken() -> (Lock, HoldKey, WaiterId) {
    let mut lock = Lock::new();
    let (first, next) = (lock.ask(writer()), lock.ask(writer()));
    assert_eq!(lock.actions(), ["acquire #1"]);
    lock.push(1, 11);
    let hold_key = lock.hold_key(first);
    (lock, hold_key, next)
}

#[test]
fn a_grant_that_overtook_its_answer_is_passed_on_and_its_release_names_its_not_after() {
    let (mut lock, hold_key, next) = overtaken();
    lock.release(hold_key);
    let hold_key = lock.hold_key(next);
    lock.release(hold_key);
    assert_eq!(lock.actions(), ["release #1 not after 2000"]);
}

#[test]
fn a_grant_of_a_life_that_has_ended_is_not_passed_on() {
    let (mut lock, hold_key, next) = overtaken();
    lock.machine.note_run(RunId(RUN.0 + 1));
    assert_eq!(lock.actions(), ["renew #1"]);
    lock.release(hold_key);
    assert_eq!(lock.pick(next), "waits");
}

#[test]
fn batch_that_takes_no_time_is_not_renewed_early() {
    let mut sections = vec![0; 64];
    assert!(batch_of(&sections).iter().all(Vec::is_empty), "the release is there as soon");
    sections[0] = 1;
    let told = batch_of(&sections);
    assert_eq!(told.iter().position(|sent| !sent.is_empty()), Some(63), "{told:?}");
}

#[test]
fn a_pushed_grant_is_passed_on_within_the_first_half_of_its_window() {
    let (mut lock, first) = Lock::queued(writer());
    let next = lock.ask(writer());
    lock.push(1, 11);
    let hold_key = lock.hold_key(first);
    lock.pause(978);
    lock.release(hold_key);
    assert_eq!((lock.pick(next).as_str(), lock.actions().len()), ("granted 11.1", 0));
}
