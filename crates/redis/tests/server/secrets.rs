//! A password appears in nothing that anybody can read, whatever this and the other tests of the process make the library say.

use bandog::Locks;
use bandog_redis::{RedisConfig, RedisStore};

use crate::support::log::Log;
use crate::support::{Server, hasty, if_possible, soon};

#[test]
fn a_password_is_never_said_and_a_risk_is() {
    if_possible(async {
        let log = Log::everywhere();
        let secret = format!("s{:016x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 1));
        let server = Server::with(&["--requirepass", &secret, "--maxmemory-policy", "allkeys-lru"]);
        let url = |secret: &str| format!("redis://:{secret}@127.0.0.1:{}", server.port);
        let mut said = String::new();
        let (config, _) = RedisConfig::from_url(&url(&secret)).unwrap();
        said += &format!("{config} {config:?}");
        let store = RedisStore::connect(config).await.unwrap();
        said += &format!("{store} {store:?}");
        for wrong in
            [url(&secret[1..]), url(&secret).replace("127.0.0.1", "name.invalid"), format!("{}x", url(&secret))]
        {
            let error = Locks::connect(&wrong).await.unwrap_err();
            said += &format!("{error} {error:?}");
        }
        let locks = hasty().connect(&url(&secret)).await.unwrap();
        let guard = locks.mutex("job").acquire().await.unwrap();
        said += &format!("{locks:?} {guard:?}");
        server.restart();
        said += &format!("{:?}", soon("the loss", guard.lost()).await);
        server.kill();
        let error = locks.mutex("job").wait(std::time::Duration::from_millis(300)).acquire().await.unwrap_err();
        said += &format!("{error} {error:?}");
        let log = log.text();
        assert!(log.contains("could not be opened"), "nothing was said about the trouble");
        assert!(log.contains("WARN") && log.contains("allkeys-lru"), "the risk was not told");
        assert!(!said.contains(&secret[1..]), "{said}");
        assert!(!log.contains(&secret[1..]), "{log}");
    });
}
