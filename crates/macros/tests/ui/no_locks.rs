//! The store must come from somewhere.

use bandog::{Locks, RunError, locked};

#[locked("order:{id}")]
async fn pay(id: u64) -> Result<(), RunError> {
    Ok(())
}

struct Shop {
    locks: Locks,
}

impl Shop {
    #[locked("shop")]
    async fn close(&self) -> Result<(), RunError> {
        Ok(())
    }
}

fn main() {}
