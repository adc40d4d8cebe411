//! TLS: the server's certificate is checked, and the client has one where it is asked for.

use std::path::Path;
use std::process::{Command, Stdio};

use bandog_core::checkup::{Fitness, Pace};
use bandog_core::store::StoreErrorKind;
use bandog_redis::{RedisConfig, RedisStore, checkup};

use crate::support::{Server, if_possible};

fn openssl(directory: &Path, words: &str) -> bool {
    let mut command = Command::new("openssl");
    command.args(words.split(' ')).current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// An authority, and a certificate for 127.0.0.1 that it signed.
fn certificates(directory: &Path) -> bool {
    std::fs::write(directory.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(directory, &format!("req -x509 {key} -keyout ca.key -out ca.crt -subj /CN=authority -days 2"))
        && openssl(directory, &format!("req {key} -keyout one.key -out one.csr -subj /CN=one"))
        && openssl(
            directory,
            "x509 -req -in one.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out one.crt -days 2 -extfile names",
        )
}

async fn connect(url: &str) -> Result<RedisStore, bandog_core::store::StoreError> {
    RedisStore::connect(RedisConfig::from_url(url).unwrap().0).await
}

#[test]
fn certificates_are_checked_on_both_sides() {
    if_possible(async {
        let directory = std::env::temp_dir().join(format!("bandog-tls-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        if !certificates(&directory) {
            return eprintln!("!!! SKIPPED: no openssl here to make certificates with");
        }
        let file = |name: &str| directory.join(name).display().to_string();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (crt, key, ca) = (file("one.crt"), file("one.key"), file("ca.crt"));
        let port_text = port.to_string();
        let files = ["--tls-cert-file", &crt, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
        let server = match Server::try_with(&[&["--tls-port", &port_text][..], &files].concat()) {
            Ok(server) => server,
            Err(log) if log.contains("Failed finding TLS support") || log.contains("'tls-port") => {
                std::fs::remove_dir_all(&directory).unwrap();
                return eprintln!("!!! SKIPPED: this redis-server was built without TLS");
            }
            Err(log) => panic!("{log}"),
        };
        let url = format!("rediss://127.0.0.1:{port}");
        let whole = format!("{url}?ca={ca}&cert={crt}&key={key}");
        let store = connect(&whole).await.unwrap();
        assert_eq!(store.to_string(), format!("{url}/0"));
        let strange = connect(&url).await.unwrap_err();
        assert_eq!(strange.kind, StoreErrorKind::Denied, "{strange}");
        let other_name = connect(&whole.replace("127.0.0.1", "localhost")).await.unwrap_err();
        assert_eq!(other_name.kind, StoreErrorKind::Denied, "{other_name}");
        let nameless = connect(&format!("{url}?ca={ca}")).await.unwrap_err();
        assert!(matches!(nameless.kind, StoreErrorKind::Denied | StoreErrorKind::Unavailable), "{nameless}");
        let missing = connect(&format!("{url}?ca={ca}.missing")).await.unwrap_err();
        assert!(missing.message.contains("ca.crt.missing"), "{missing}");
        let examined = |url: String| async move {
            let (config, _) = RedisConfig::from_url(&url).unwrap();
            checkup(&config, &Pace::default()).await.unwrap().about("tls").unwrap().clone()
        };
        assert_eq!(examined(whole.clone()).await.fitness, Fitness::Fine);
        for wrong in [url.clone(), whole.replace("127.0.0.1", "localhost"), format!("{url}?ca={ca}.missing")] {
            let remark = examined(wrong.clone()).await;
            assert_eq!(remark.fitness, Fitness::Wrong, "{wrong}: {remark:?}");
        }
        drop(server);
        std::fs::remove_dir_all(&directory).unwrap();
    });
}
