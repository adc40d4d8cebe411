//! And it must be one.

use bandog::{RunError, locked};

#[locked("order:{id}")]
async fn pay(locks: &str, id: u64) -> Result<(), RunError> {
    Ok(())
}

#[locked("order:{id}", locks = id)]
async fn refund(id: u64) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
