//! Values that cannot be.

use bandog::{Locks, RunError, locked};

#[locked("job", wait = "soon")]
async fn no_duration(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", wait = 5)]
async fn no_unit(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", lease = "1h")]
async fn too_long(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", max_hold = "0s")]
async fn no_time(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", renew_at = 1.5)]
async fn too_late(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", renew_at = 0.0)]
async fn too_early(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", max_renewals = "3")]
async fn no_number(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", fair = 1)]
async fn no_flag(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", on_busy = "wait")]
async fn no_answer(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", hold = "hold")]
async fn no_variable(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("job", default = ())]
async fn no_skip(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
