//! Options that are none, or are given twice.

use bandog::{Locks, RunError, locked};

#[locked("job", timeout = "5s")]
async fn unknown(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", wait = "5s", lease = "30s", wait = "6s")]
async fn twice(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", wait)]
async fn without_value(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job" wait = "5s")]
async fn no_comma(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
