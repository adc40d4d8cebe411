//! Lock names that cannot be.

use bandog::{Locks, RunError, locked};

#[locked("")]
async fn empty(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{id")]
async fn not_closed(locks: &Locks, id: u64) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:id}")]
async fn not_opened(locks: &Locks, id: u64) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{}")]
async fn nothing_named(locks: &Locks, id: u64) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{0}")]
async fn by_position(locks: &Locks, id: u64) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{id + 1}")]
async fn calculated(locks: &Locks, id: u64) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{id:?}")]
async fn debugged(locks: &Locks, id: u64) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
