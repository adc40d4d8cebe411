//! The targets of the fuzzers with a bounded number of random bytes, with bytes near to what they read, and with all that was found.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use bandog_fuzzing::{TARGETS, seeds};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Inputs for each target that are near to what it reads.
fn near(target: &str) -> BoxedStrategy<Vec<u8>> {
    let words = |text: &str| prop::sample::select(text.split(' ').map(str::to_owned).collect::<Vec<_>>()).boxed();
    let piece = match target {
        "resp" | "answers" | "opening" => prop_oneof![
            4 => words("*1\r\n *2\r\n *5\r\n *7\r\n :0\r\n :1\r\n :2\r\n :3\r\n :9223372036854775807\r\n :-1\r\n $0\r\n\r\n $-1\r\n _\r\n >3\r\n %1\r\n |1\r\n +OK\r\n -ERR\r\n"),
            1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| {
                format!("${}\r\n{}\r\n", bytes.len(), bytes.iter().map(|byte| char::from(byte & 127)).collect::<String>())
            }),
        ]
        .boxed(),
        "url" => words("redis rediss redis+unix sqlite memory : // / @ ? & = # [ ] % %40 %zz host 6379 db=1 prefix=a lease=3s connect_timeout=9e99 ~/x ."),
        "config" => words("store lease wait = \" ' \n [ ] { } , 30 3s redis://h true # \\ \"\"\" 1979-05-27"),
        "ticket" => words("bandog1- 00 ff 0 a f g - é"),
        "pattern" => words("* ? [ ] \\ a b - ^ ! \0 é"),
        _ => "\\PC{0,12}".boxed(),
    };
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes()).boxed()
}

/// A seed with some of its bytes changed.
fn changed(mut seed: Vec<u8>, changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    for (at, byte) in changes {
        if !seed.is_empty() {
            let at = at.index(seed.len());
            seed[at] = *byte;
        }
    }
    seed
}

fn play(name: &str, target: fn(&[u8]), cases: u32) {
    // The same each time: what a run finds is found by the next one too. Other bytes are for the fuzzers.
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let random = prop::collection::vec(any::<u8>(), 0..300);
    let mut choices = vec![random.boxed(), near(name)];
    let seeds = seeds(name);
    if !seeds.is_empty() {
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4_usize);
        choices
            .push((prop::sample::select(seeds), changes).prop_map(|(seed, changes)| changed(seed, &changes)).boxed());
    }
    let bytes = prop::strategy::Union::new(choices);
    let told = runner.run(&bytes, |bytes| {
        target(&bytes);
        Ok(())
    });
    told.unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn no_bytes_break_a_decoder() {
    for (name, target) in TARGETS.iter().filter(|(name, _)| *name != "secrets") {
        play(name, *target, 2_000);
    }
}

#[test]
fn no_message_repeats_a_planted_secret() {
    let secrets = TARGETS.iter().find(|(name, _)| *name == "secrets").unwrap();
    play(secrets.0, secrets.1, 20_000);
}

#[test]
fn every_record_one_byte_away_from_a_good_one_is_settled() {
    for seed in seeds("record") {
        for (at, byte) in (2..seed.len()).flat_map(|at| [(at, 0), (at, 1), (at, 2)]) {
            let mut bytes = seed.clone();
            bytes[at] = byte;
            bandog_fuzzing::record(&bytes);
        }
    }
}

#[test]
fn inputs_that_once_broke_a_decoder_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found");
    for (name, target) in TARGETS {
        let Ok(found) = std::fs::read_dir(folder.join(name)) else { continue };
        for file in found {
            let path = file.unwrap().path();
            println!("{}", path.display());
            target(&std::fs::read(path).unwrap());
        }
    }
}

#[test]
fn every_target_has_a_fuzzer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        let file = std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs")));
        assert!(file.is_ok_and(|file| file.contains(&format!("\"{name}\""))), "fuzz/fuzz_targets/{name}.rs");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} in fuzz/Cargo.toml");
    }
}
