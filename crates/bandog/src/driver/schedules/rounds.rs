//! The watchdog's round beside the renewal thread: whichever of them runs first after a pause.

use std::time::Duration;

use shuttle::future::block_on;

use super::explore;
use super::world::{World, close};

const NAME: &str = "job";
const LEASE: Duration = Duration::from_secs(4);

#[test]
fn after_a_pause_the_round_comes_before_the_timers_or_after_them() {
    explore("pause and round", 1000, || {
        let world = World::any();
        let locks = world.builder().response_timeout(Duration::from_secs(1)).build().unwrap();
        let guard = block_on(locks.mutex(NAME).lease(LEASE).max_renewals(0).acquire()).unwrap();
        // No timer is served meanwhile: the watchdog may see that before the renewal thread has run.
        world.clock.pause(Duration::from_secs(31));
        world.pass(Duration::from_secs(2));
        assert!(!guard.is_held());
        assert_eq!(locks.health().findings.renewal, 0, "the renewal thread was as stopped as everybody");
        drop(guard);
        close(&world, [locks], &[NAME]);
    });
}
