//! The examples play to their end and say so.
#![cfg(feature = "macros")]

#[allow(dead_code, reason = "its main is for people")]
#[path = "../examples/axum.rs"]
mod axum_handler;
#[allow(dead_code, reason = "its main is for people")]
#[path = "../examples/flash_sale.rs"]
mod flash_sale;
#[allow(dead_code, reason = "its main is for people")]
#[path = "../examples/scheduler.rs"]
mod scheduler;

#[tokio::test(flavor = "multi_thread")]
async fn a_flash_sale_sells_what_is_there_and_nothing_twice() {
    let told = flash_sale::tell("memory:sale").await.unwrap();
    assert_eq!(told, "35 sold to 60 buyers at 3 shops, nothing twice; the late write was refused: true.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_job_runs_on_one_host_per_tick() {
    assert_eq!(scheduler::tell("memory:scheduler").await.unwrap(), "4 ticks on 3 hosts: 4 runs.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_answers_busy_and_lost() {
    assert_eq!(axum_handler::tell("memory:").await.unwrap(), "paid: 200, at the same time: 409, revoked: 503.");
}
