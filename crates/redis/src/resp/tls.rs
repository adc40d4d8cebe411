//! TLS by rustls: whom to trust, and the certificate to show. The [configuration](crate::RedisConfig) reads the files.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Files that were read, in PEM.
#[derive(Default)]
pub(crate) struct Files {
    /// Whom to trust, in place of those whom the machine trusts.
    pub(crate) ca: Option<Vec<u8>>,
    /// Our own certificate and its key.
    pub(crate) client: Option<(Vec<u8>, Vec<u8>)>,
}

/// What is needed for TLS to one server.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// For the server of this name. An error says what is wrong with the files or the name.
    pub(super) fn new(host: &str, files: Files) -> Result<Self, String> {
        choose_provider();
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let trusted = match &files.ca {
            Some(ca) => roots(certificates("the authority", ca)?)?,
            None => native_roots(),
        };
        let config = ClientConfig::builder().with_root_certificates(trusted);
        let config = match &files.client {
            None => config.with_no_client_auth(),
            Some((cert, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|error| format!("the key of the client is no key in PEM: {error}"))?;
                let chain = certificates("the client", cert)?;
                config.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
            }
        };
        Ok(Self { config: Arc::new(config), name })
    }

    pub(super) async fn connect(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(Arc::clone(&self.config)).connect(self.name.clone(), stream).await
    }
}

fn certificates(whose: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(format!("there is no certificate in PEM for {whose}")),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("the certificate of {whose} cannot be read as PEM: {error}")),
    }
}

fn roots(certificates: Vec<CertificateDer<'static>>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|error| format!("the authority cannot be trusted: {error}"))?;
    }
    Ok(roots)
}

// Those that cannot be read are trusted by nobody; without any, no server is.
fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Two providers in one program and none chosen would be a panic at the first connection.
fn choose_provider() {
    use rustls::crypto::{CryptoProvider, ring};
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster: theirs is as good.
        drop(ring::default_provider().install_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_told() {
        for file in [b"".as_slice(), b"\x30\x82\x03\x0a DER and not PEM"] {
            assert_eq!(
                certificates("the authority", file).unwrap_err(),
                "there is no certificate in PEM for the authority"
            );
        }
    }
}
