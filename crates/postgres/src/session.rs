//! One connection: opened and examined within its time, and the run of the server behind it.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bandog_core::store::{StoreError, StoreErrorKind};
use bandog_core::time::RunId;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Connection, Notification, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::PostgresConfig;
use crate::error::{self, Step};
use crate::rows::{Prepared, Rows};
use crate::schema;

/// The oldest server that the tests would run on.
const OLDEST: i32 = 130_000;

/// Everything that has to be right about a server, in one question. The name of a file of the log begins with the timeline.
const EXAMINATION: &str = "
    SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), pg_is_in_recovery(),
        (SELECT system_identifier FROM pg_control_system()),
        CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
        current_setting('synchronous_commit') <> 'off'";

/// An open connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) run: RunId,
    /// Whether a commit is on disk when it is answered, by the server's own settings.
    pub(crate) is_durable: bool,
    pub(crate) prepared: Prepared,
    /// Told when somebody takes the connection for dead.
    pub(crate) dead: Arc<Notify>,
}

/// What others told it; ends with the connection.
pub(crate) type Heard = mpsc::UnboundedReceiver<Notification>;

impl Session {
    /// Opens a connection to a server that can be written to, and makes the tables if they are missing.
    pub(crate) async fn open(config: &PostgresConfig) -> Result<(Self, Heard), StoreError> {
        let opened = tokio::time::timeout(config.connect_timeout, open(config)).await;
        let opened = opened.unwrap_or_else(|_| Err(error::silent("opening a connection")));
        opened.map_err(|error| StoreError { message: format!("{config}: {}", error.message), ..error })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }
}

async fn open(config: &PostgresConfig) -> Result<(Session, Heard), StoreError> {
    let tls = tls(config.ca.as_deref()).map_err(|error| unfit(format!("the authority cannot be read: {error}")))?;
    let failed = |error| error::explain(Step::Opening, &error);
    let (client, connection) = config.server.connect(tls).await.map_err(failed)?;
    let (tell, heard) = mpsc::unbounded_channel();
    tokio::spawn(drive::<MakeRustlsConnect>(connection, tell));
    let row = client.query_typed_one(EXAMINATION, &[]).await.map_err(failed)?;
    let (version, encoding, is_standby): (i32, String, bool) = (row.get(0), row.get(1), row.get(2));
    if version < OLDEST {
        return Err(unfit(format!(
            "the server is of version {}; bandog needs {} or newer",
            version / 10_000,
            OLDEST / 10_000
        )));
    }
    if encoding != "UTF8" {
        return Err(unfit(format!("the database is in {encoding}, and names of locks need UTF8")));
    }
    if is_standby {
        let message = "the server is a standby, which cannot be written to";
        return Err(StoreError::not_executed(StoreErrorKind::Unready, message));
    }
    let (run, is_durable) = (run(row.get(3), row.get(4)), row.get(5));
    schema::prepare(&client, &config.schema).await?;
    let prepared =
        if config.prepares { Rows::new(&config.schema).prepare(&client).await.map_err(failed)? } else { None };
    Ok((Session { client, run, is_durable, prepared, dead: Arc::default() }, heard))
}

/// A failover begins a new timeline, in which the last grants may be missing; a restart goes on with what it had.
fn run(system: i64, timeline: &str) -> RunId {
    let timeline = u64::from_str_radix(timeline, 16).unwrap_or(0);
    RunId(system.cast_unsigned().rotate_left(16) ^ timeline)
}

/// Carries what is said in both directions until the connection ends.
async fn drive<T: MakeTlsConnect<Socket>>(
    mut connection: Connection<Socket, T::Stream>,
    tell: mpsc::UnboundedSender<Notification>,
) where
    T::Stream: Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message {
            // Those who only call do not listen.
            drop(tell.send(notification));
        }
    }
}

fn tls(ca: Option<&Path>) -> io::Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    match ca {
        None => {
            // Those that cannot be read are trusted by nobody; without any, no server is.
            let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(path) => {
            let pem = std::fs::read(path)?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let trusted = certificate.map_err(io::Error::other)?;
                roots.add(trusted).map_err(io::Error::other)?;
            }
        }
    }
    // Named: two providers in one program and none chosen would be a panic.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn unfit(message: String) -> StoreError {
    StoreError::not_executed(StoreErrorKind::Unfit, message)
}
