//! A store is examined by its URL, with the options that its clients would have.

use bandog::{ConfigError, ErrorKind, Fitness, Locks, blocking, checkup};

#[tokio::test]
async fn memory_is_fine_and_says_whose_it_is() {
    for url in ["memory:", "memory:shop?lease=10s"] {
        let found = checkup(url).await.unwrap();
        assert_eq!(found.worst(), Fitness::Fine);
        assert!(found.about("reach").unwrap().saw.contains("this process alone"), "{found:?}");
    }
}

#[tokio::test]
async fn wrong_urls_and_options_are_errors_as_at_connect() {
    for url in ["mongo://x", "memory:?leese=3s", "memory:?lease=0s", "redis://"] {
        let (examined, connected) = (checkup(url).await.unwrap_err(), Locks::connect(url).await.unwrap_err());
        assert_eq!(examined, connected, "{url}");
        assert_eq!(examined.kind(), ErrorKind::Invalid, "{url}");
    }
    let unasked = checkup("redis://name.invalid?response_timeout=soon").await.unwrap_err();
    assert_eq!(unasked.kind(), ErrorKind::Invalid, "options are read first: {unasked}");
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_an_error_without_its_password() {
    let error = checkup("redis+unix://ann:s3cret@/nowhere/socket").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(matches!(error, ConfigError::Store { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}

#[test]
fn checkup_needs_no_runtime() {
    assert_eq!(blocking::checkup("memory:").unwrap().worst(), Fitness::Fine);
    assert_eq!(blocking::checkup("redis+unix:///nowhere/socket").unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn a_server_is_examined_with_the_options_of_its_url() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = bandog_rig::Server::with(&["--timeout", "20"]);
    let usual = blocking::checkup(&server.url()).unwrap();
    let slow = blocking::checkup(&format!("{}?watchdog_period=10s", server.url())).unwrap();
    assert_eq!(usual.about("timeout").unwrap().fitness, Fitness::Fine, "{usual:#?}");
    assert_eq!(slow.about("timeout").unwrap().fitness, Fitness::Risky, "{slow:#?}");
    assert_eq!(usual.store, format!("{}/0", server.url()));
}

#[test]
fn the_page_has_a_row_for_memory() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md")).unwrap();
    assert!(page.lines().any(|line| line.starts_with("| `reach` |")));
}
