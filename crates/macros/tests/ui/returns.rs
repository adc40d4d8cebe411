//! What is returned can tell of a lock that is busy or lost.

use bandog::{Locks, RunError, locked};

#[locked("job")]
async fn nothing(locks: &Locks) {}

#[locked("job")]
fn a_number(locks: &Locks) -> u32 {
    1
}

#[locked("job", on_busy = "skip")]
async fn nothing_to_skip(locks: &Locks) {}

#[locked("job", on_busy = "skip")]
async fn no_option(locks: &Locks) -> u32 {
    1
}

#[locked("job", on_busy = "skip")]
async fn no_option_inside(locks: &Locks) -> Result<u32, RunError> {
    Ok(1)
}

#[locked("job")]
fn a_future(locks: &Locks) -> impl Future<Output = Result<(), RunError>> {
    async { Ok(()) }
}

#[locked("job")]
fn a_boxed_future(locks: &Locks) -> std::pin::Pin<Box<dyn Future<Output = Result<(), RunError>> + Send + '_>> {
    Box::pin(async { Ok(()) })
}

#[locked("job")]
const fn a_constant(locks: &Locks) -> Result<(), RunError> {
    Ok(())
}

fn main() {}
