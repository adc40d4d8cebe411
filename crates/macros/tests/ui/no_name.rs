//! The lock name is missing.

use bandog::{Locks, RunError, locked};

#[locked(wait = "5s")]
async fn pay(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked]
async fn refund(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
