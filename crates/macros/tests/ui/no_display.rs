//! Whatever is in a lock name can be shown.

use bandog::{Locks, RunError, locked};

struct Order {
    id: Option<u64>,
}

#[locked("order:{order.id}")]
async fn pay(locks: &Locks, order: &Order) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{order.number}")]
async fn ship(locks: &Locks, order: &Order) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
