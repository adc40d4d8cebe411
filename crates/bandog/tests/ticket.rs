//! Tickets: a detached hold is kept and released by whoever has its secret, and by nobody else.

mod common;
mod echo;

use bandog::{ErrorKind, Owner, Ticket, TicketError};
use common::{World, ready, secs, waiting};
use echo::Echo;

#[tokio::test]
async fn a_detached_hold_lives_by_its_ticket_alone() {
    let world = World::near();
    let (here, there) = (world.locks(), world.locks());
    let guard = here.mutex("job").acquire().await.unwrap();
    let (token, lost) = (guard.token(), guard.lost());
    let ticket: Ticket = guard.detach().await.unwrap().secret().parse().unwrap();
    assert_eq!((ticket.name(), ticket.token(), ticket.lease()), ("job", token, secs(30)));
    let holder = &world.view("job").unwrap().holders[0];
    assert_eq!((holder.id, holder.remaining), (ticket.holder(), secs(30)));

    world.pass(secs(20)).await;
    assert_eq!(world.view("job").unwrap().holders[0].remaining, secs(10), "nobody renews it by itself");
    assert_eq!(ticket.renew(&there).await.unwrap(), secs(30));
    world.pass(secs(20)).await;
    assert!(here.mutex("job").try_acquire().await.unwrap().is_none());
    let mut next = waiting(here.mutex("job").acquire());
    ticket.release(&there).await.unwrap();
    assert!(ready(&mut next).unwrap().token() > token);
    let mut lost = Box::pin(lost);
    assert!(common::poll(&mut lost).is_pending(), "given away is not lost");
}

#[tokio::test]
async fn a_ticket_without_renewals_ends_with_its_lease() {
    let world = World::near();
    let locks = world.locks();
    let ticket = locks.mutex("job").lease(secs(5)).acquire().await.unwrap().detach().await.unwrap();
    world.pass(secs(5)).await;
    let error = ticket.renew(&locks).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    let told = "its lease of 5s ran out, at 2026-01-";
    assert!(error.to_string().contains(told) && error.to_string().contains(": not renewed: "), "{error}");
    let error = ticket.release(&locks).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains(told) && error.to_string().contains(": not released: "), "{error}");
}

#[tokio::test]
async fn a_ticket_that_was_released_says_so() {
    let world = World::near();
    let locks = world.locks();
    let ticket = locks.mutex("job").acquire().await.unwrap().detach().await.unwrap();
    ticket.release(&locks).await.unwrap();
    for error in
        [ticket.renew(&locks).await.unwrap_err().to_string(), ticket.release(&locks).await.unwrap_err().to_string()]
    {
        assert!(error.ends_with("it was released already"), "{error}");
    }
    // Also when somebody else has the lock by now.
    let next = locks.mutex("job").acquire().await.unwrap();
    let error = ticket.release(&locks).await.unwrap_err();
    assert!(error.to_string().ends_with("it was released already"), "{error}");
    next.release().await.unwrap();
    // Nobody remembers it for longer than that.
    world.pass(secs(15)).await;
    let error = ticket.release(&locks).await.unwrap_err();
    assert!(error.to_string().contains("the store remembers nothing of it"), "{error}");
}

#[tokio::test]
async fn a_revoked_ticket_is_told_why() {
    let world = World::near();
    let locks = world.locks();
    let ticket = locks.mutex("job").acquire().await.unwrap().detach().await.unwrap();
    locks.revoke("job", "deploying").await.unwrap();
    let error = ticket.renew(&locks).await.unwrap_err();
    assert!(error.to_string().ends_with("the hold is lost: revoked: deploying"), "{error}");
}

#[tokio::test]
async fn waiters_of_the_same_process_go_on_after_a_detach() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    let mut next = waiting(locks.mutex("job").acquire());
    let ticket = guard.detach().await.unwrap();
    assert!(common::poll(&mut next).is_pending());
    ticket.release(&locks).await.unwrap();
    drop(ready(&mut next).unwrap());
}

#[tokio::test]
async fn reentrant_hold_is_not_detached() {
    let locks = World::near().locks();
    let me = Owner::new();
    let outer = locks.mutex("job").owner(&me).reentrant().acquire().await.unwrap();
    let inner = locks.mutex("job").owner(&me).reentrant().acquire().await.unwrap();
    let error = inner.detach().await.unwrap_err();
    assert!(
        error.to_string().ends_with("not detached: entered more than once; release the inner guards first"),
        "{error}"
    );
    assert!(outer.is_held());
}

#[tokio::test]
async fn a_late_push_of_its_grant_does_not_end_a_detached_hold() {
    let store = Echo::default();
    let (other, locks) = (store.locks(), store.locks());
    let first = other.mutex("job").acquire().await.unwrap();
    let mut next = waiting(locks.mutex("job").acquire());
    first.release().await.unwrap();
    let ticket = ready(&mut next).unwrap().detach().await.unwrap();
    assert_eq!(store.repeat_grants(), 1);
    ticket.renew(&other).await.expect("still held");
}

#[test]
fn a_text_that_is_no_ticket_says_so_and_is_not_repeated() {
    let world = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let secret = world.block_on(async {
        let locks = bandog::Locks::connect("memory:").await.unwrap();
        locks.mutex("job").acquire().await.unwrap().detach().await.unwrap().secret()
    });
    assert!(secret.parse::<Ticket>().is_ok());
    assert!(format!(" {secret}\n").parse::<Ticket>().is_ok(), "as a shell would hand it over");
    assert!(!format!("{:?}", secret.parse::<Ticket>().unwrap()).contains(&secret[8..40]));
    assert_eq!("hello".parse::<Ticket>(), Err(TicketError::NoTicket));
    for cut in 8..secret.len() {
        assert_eq!(secret[..cut].parse::<Ticket>(), Err(TicketError::Damaged), "{cut} characters");
    }
    for at in 8..secret.len() {
        let other = if &secret[at..=at] == "0" { "1" } else { "0" };
        let changed = format!("{}{other}{}", &secret[..at], &secret[at + 1..]);
        assert_eq!(changed.parse::<Ticket>(), Err(TicketError::Damaged), "character {at}");
    }
    assert_eq!("bandog1-+1é".parse::<Ticket>(), Err(TicketError::Damaged));
}
