#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bandog_fuzzing::run("frame", data));
