//! TLS: connections that nobody on the way can read or change.

use std::fmt;
use std::fs;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::{Error, Result};

/// A certificate with its key, from two files that may change while the server runs.
pub struct Tls {
    cert: String,
    key: String,
    now: RwLock<Pair>,
}

/// What the files held when they were read last.
#[derive(Clone)]
struct Pair {
    config: Arc<ServerConfig>,
    out_of_date: Option<String>,
}

impl Tls {
    /// Reads a certificate, with those behind it, and its key from files of PEM.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::File`] for a file that cannot be read or holds something else, or a key of another
    /// certificate.
    pub fn load(cert: impl Into<String>, key: impl Into<String>) -> Result<Self> {
        let (cert, key) = (cert.into(), key.into());
        let now = RwLock::new(read(&cert, &key)?);
        Ok(Self { cert, key, now })
    }

    /// Reads both files again, for connections from now on.
    ///
    /// # Errors
    /// Those of [`Tls::load`]; what was read before stays then.
    pub fn reload(&self) -> Result<()> {
        let pair = read(&self.cert, &self.key)?;
        *self.now.write().expect("nobody panics with it") = pair;
        Ok(())
    }

    /// Why clients will not trust the certificate today, if its dates are the reason.
    pub fn out_of_date(&self) -> Option<String> {
        self.now().out_of_date
    }

    /// What takes a connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.now().config.into()
    }

    fn now(&self) -> Pair {
        self.now.read().expect("nobody panics with it").clone()
    }
}

/// Where it is from; not the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({}, {})", self.cert, self.key)
    }
}

fn read(cert_path: &str, key_path: &str) -> Result<Pair> {
    let bytes = |path: &str| {
        let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
        fs::read(path).map_err(failed)
    };
    let wrong = |path: &str, problem: String| Error::File { file: path.to_owned(), problem };
    let certs = CertificateDer::pem_slice_iter(&bytes(cert_path)?)
        .collect::<std::result::Result<Vec<_>, _>>();
    let certs = certs.ok().filter(|certs| !certs.is_empty()).ok_or_else(|| {
        wrong(cert_path, "holds no certificate; give a file of PEM, the server's own first".into())
    })?;
    let key = PrivateKeyDer::from_pem_slice(&bytes(key_path)?).map_err(|_| {
        let problem = "holds no private key; give a file of PEM that asks for no passphrase";
        wrong(key_path, problem.into())
    })?;
    let out_of_date = out_of_date(cert_path, &certs[0])?;
    let refused = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            wrong(key_path, format!("is not the key of the first certificate of {cert_path}"))
        }
        error => wrong(cert_path, format!("{error}; give another certificate and key")),
    };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certs, key));
    let mut config = config.map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Pair { config: Arc::new(config), out_of_date })
}

/// What is wrong with the dates of a certificate.
fn out_of_date(path: &str, cert: &CertificateDer<'_>) -> Result<Option<String>> {
    let read = Certificate::from_der(cert).map_err(|error| Error::File {
        file: path.to_owned(),
        problem: format!("holds no X.509 certificate: {error}"),
    })?;
    let validity = read.tbs_certificate.validity;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(if validity.not_after.to_unix_duration() < now {
        Some(format!("{path} expired on {}", validity.not_after))
    } else if validity.not_before.to_unix_duration() > now {
        Some(format!("{path} is not valid before {}", validity.not_before))
    } else {
        None
    })
}
