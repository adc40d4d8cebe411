//! The error is made from a lock error.

use bandog::{Locks, locked};

#[derive(Debug)]
struct PayError;

#[locked("job")]
async fn pay(locks: &Locks) -> Result<(), PayError> {
    Ok(())
}

fn main() {}
