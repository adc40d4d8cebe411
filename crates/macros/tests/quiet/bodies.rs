//! Bodies of every shape, about which the compiler has nothing to say that is not about the user's own words.

#![deny(warnings)]

use bandog::{Locks, RunError, locked};

#[locked("one")]
async fn one_line(locks: &Locks) -> Result<u64, RunError> { Ok(1) }

#[locked("one")]
fn one_line_of_a_thread(locks: &bandog::blocking::Locks) -> Result<u64, RunError> { Ok(1) }

#[locked("one", on_busy = "skip", default = ())]
async fn nothing(locks: &Locks) {}

#[locked("one", on_busy = "skip", default = 0)]
async fn number(locks: &Locks) -> u64 { 7 }

#[locked("one")]
async fn block(locks: &Locks, early: bool) -> Result<u64, RunError> {
    if early {
        return Ok(0);
    }
    let inner = async { 1 }.await;
    Ok(inner)
}

#[locked("one")]
async fn inner_attribute(locks: &Locks) -> Result<u64, RunError> {
    #![allow(unused_variables)]
    let unused = 1;
    Ok(2)
}

struct Shop { locks: Locks }

impl Shop {
    #[locked("shop", locks = self.locks)]
    async fn pay(&self) -> Result<u64, RunError> { Ok(3) }
}

fn main() {
    let _ = (one_line, one_line_of_a_thread, nothing, number, block, inner_attribute, Shop::pay);
    let _ = |locks| Shop { locks };
}
