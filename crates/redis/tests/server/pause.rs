//! A holder that is stopped past its lease: it knows at its first look, and its token is refused.

use crate::apart::{Apart, LEASE};
use crate::support::{locks, on_a_server, soon};

/// A resource that remembers the highest token, and takes no lower one.
#[derive(Default)]
struct Resource(u64);

impl Resource {
    fn takes(&mut self, token: impl ToString) -> bool {
        let token = token.to_string().parse().unwrap();
        let is_fresh = token >= self.0;
        self.0 = self.0.max(token);
        is_fresh
    }
}

#[test]
fn schedule_01_a_holder_is_stopped_past_its_lease() {
    on_a_server(async |server| {
        let (mut ann, mut resource) = (Apart::start(&server.url()), Resource::default());
        assert!(resource.takes(ann.ask("acquire")));
        assert_eq!(ann.ask("look"), "true false");
        ann.stop();
        let rival = locks(&server.url()).await;
        let guard = soon("the lease to end", rival.mutex("job").acquire()).await.unwrap();
        assert!(resource.takes(guard.token()));
        tokio::time::sleep(LEASE * 2).await;
        // Asked while it is stopped, so that this is the first that it sees.
        ann.tell("look");
        ann.tell("write");
        ann.go_on();
        assert_eq!(ann.hear("look"), "false true", "it believes that it holds what another holds");
        assert!(!resource.takes(ann.hear("write")), "a stale write");
        assert!(guard.is_held() && resource.takes(guard.token()));
    });
}

#[test]
fn schedule_02_a_holder_is_stopped_between_its_look_and_its_write() {
    on_a_server(async |server| {
        let (mut ann, mut resource) = (Apart::start(&server.url()), Resource::default());
        ann.ask("acquire");
        assert_eq!(ann.ask("look"), "true false");
        // It has looked, and will write without another look: no lock can help here, only the token does.
        ann.stop();
        let rival = locks(&server.url()).await;
        let guard = soon("the lease to end", rival.mutex("job").acquire()).await.unwrap();
        assert!(resource.takes(guard.token()));
        ann.tell("write");
        ann.go_on();
        assert!(!resource.takes(ann.hear("write")), "a stale write");
        assert!(resource.takes(guard.token()), "the holder goes on");
    });
}
