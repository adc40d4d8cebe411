//! Only functions have bodies.

use bandog::{Locks, RunError, locked};

#[locked("job")]
struct Shop;

trait Pays {
    #[locked("job")]
    async fn pay(&self, locks: &Locks) -> Result<(), RunError>;
}

fn main() {}
