//! A record survives being written down and read back; bytes that are no record are refused, and never make the ledger panic.

use bandog_core::ledger::{Limits, Record};
use bandog_core::op::{Claim, Op};
use bandog_core::token::Stamp;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::config;
use crate::script::{Script, scripts};
use crate::world::{World, look};

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn record_that_is_read_back_equals_the_one_written(script in scripts(50)) {
        play(&script, |record, _| {
            prop_assert_eq!(&restored(&written(record)).expect("just written"), record);
            Ok(())
        })?;
    }

    #[test]
    fn damaged_records_are_refused_or_can_be_gone_on_with(
        script in scripts(30), hits in vec((any::<prop::sample::Index>(), prop_oneof![0..3_u8, any::<u8>()]), 1..4)
    ) {
        let limits = Limits::default();
        play(&script, |record, world| {
            let mut bytes = written(record);
            for (at, value) in &hits {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            if let Ok(mut damaged) = restored(&bytes) {
                for op in world.sent().iter().chain([&Op::Tend, &Op::Inspect]) {
                    // To its end: whatever the bytes said, it comes to one.
                    damaged.apply_and_tend(&limits, world.now(), op);
                }
            }
            Ok(())
        })?;
    }
}

/// Files of before stay readable: whom a claim was to follow is judged when it comes, and not written down.
#[test]
fn stamp_that_a_claim_follows_is_not_serialized() {
    let claim = crate::found::claim();
    let follows = Claim { after: Some(Stamp::from_micros(7)), ..claim.clone() };
    let bytes = postcard::to_allocvec(&follows).expect("claims can be written");
    assert_eq!(bytes, postcard::to_allocvec(&claim).expect("claims can be written"));
    assert_eq!(postcard::from_bytes::<Claim>(&bytes).expect("just written"), claim);
}

#[test]
fn random_bytes_are_refused() {
    for length in 0..64_u8 {
        let noise: Vec<u8> = (0..length).map(|n| n.wrapping_mul(97) ^ 0xa5 | 1).collect();
        assert!(restored(&noise).is_err(), "{noise:?}");
    }
}

fn play(
    script: &Script,
    mut after: impl FnMut(&Record, &World) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let (mut world, mut record) = (World::new(script.setting), Record::default());
    let limits = Limits { work: 3, ..world.limits() };
    for step in &script.steps {
        world.tick(step.tick);
        let op = world.op(step, &look(&record, &limits, world.now()));
        record.apply(&limits, world.now(), &op);
        after(&record, &world)?;
    }
    Ok(())
}

fn written(record: &Record) -> Vec<u8> {
    postcard::to_allocvec(record).expect("records can be written")
}

fn restored(bytes: &[u8]) -> postcard::Result<Record> {
    postcard::from_bytes(bytes)
}
