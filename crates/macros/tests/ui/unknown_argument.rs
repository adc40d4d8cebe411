//! A lock name is made of what the function is given.

use bandog::{Locks, RunError, locked};

#[locked("order:{uid}")]
async fn pay(locks: &Locks, id: u64, amount: u32) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{self.id}", locks = LOCKS.get())]
fn refund() -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{order.id}")]
async fn ship(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
