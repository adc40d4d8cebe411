//! A body with a fault of its own is told so where the fault is.

use bandog::{Locks, RunError, locked};

#[locked("job")]
async fn pay(locks: &Locks) -> Result<u32, RunError> {
    Ok("three")
}

#[locked("job")]
fn refund(locks: &Locks) -> Result<u32, RunError> {
    Ok("three")
}

#[locked("job")]
async fn ship(locks: &Locks) -> Result<u32, RunError> {
    unknown()
}

fn main() {}
