//! A server as it should be: all is fine, nothing is left behind, and a user with the documented rule is only told what it cannot see.

use bandog_core::checkup::Fitness;

use crate::support::{documented_rule, if_possible, locks};
use crate::{ailing, examine, good_but, told};

#[test]
fn a_good_server_is_fine_and_keeps_nothing() {
    if_possible(async {
        let server = good_but(&[]);
        let found = examine(&server.url()).await;
        assert_eq!(ailing(&found), Vec::<&str>::new(), "{found:#?}");
        assert_eq!(found.store, format!("{}/0", server.url()));
        assert_eq!(found.remarks.len(), 20, "{found:#?}");
        assert_eq!(server.size(), 0, "keys are left");
        assert_eq!(server.run::<Vec<String>>("PUBSUB CHANNELS"), Vec::<String>::new());
        told(&found, "locking", Fitness::Fine, &["acquire and release", "of the server"]);
        told(&found, "delivery", Fitness::Fine, &["a message arrived"]);
        told(&found, "clock", Fitness::Fine, &["does not matter"]);
        told(&found, "latency", Fitness::Fine, &["200 pings", "p50", "p99"]);
        assert_eq!(ailing(&examine(&server.unix_url()).await), Vec::<&str>::new());
    });
}

#[test]
fn check_the_documented_user_cannot_do_is_unknown_and_names_the_permission() {
    if_possible(async {
        let server = good_but(&[]);
        let _: String = server.run(&documented_rule());
        let _held = locks(&server.url()).await.mutex("held").acquire().await.unwrap();
        let url = format!("redis://locker:secret@127.0.0.1:{}", server.port);
        let found = examine(&url).await;
        assert_eq!(found.count(Fitness::Wrong) + found.count(Fitness::Risky), ailing_version(&found), "{found:#?}");
        assert_eq!(ailing(&found), ["login", "timeout", "slow-commands", "news-buffer", "keys"], "{found:#?}");
        for remark in found.remarks.iter().filter(|remark| remark.fitness == Fitness::Unknown) {
            let line = remark.change.as_ref().unwrap_or_else(|| panic!("{remark:?}"));
            let _: String = server.run(line);
        }
        assert_eq!(ailing(&examine(&url).await), Vec::<&str>::new());
        assert_eq!(server.size(), 1, "keys are left");
    });
}

fn ailing_version(found: &bandog_core::checkup::Checkup) -> usize {
    usize::from(found.about("version").is_some_and(|remark| remark.fitness > Fitness::Fine))
}

#[test]
fn a_password_is_asked_of_strangers() {
    if_possible(async {
        let server = good_but(&["--requirepass", "s3cret"]);
        let found = examine(&format!("redis://:s3cret@127.0.0.1:{}", server.port)).await;
        assert_eq!(ailing(&found), Vec::<&str>::new(), "{found:#?}");
        told(&found, "login", Fitness::Fine, &["a password is needed", "default"]);
        assert!(!format!("{found:?}").contains("s3cret"), "{found:?}");
    });
}
