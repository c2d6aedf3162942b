//! Signals to the server.

use std::sync::Arc;

use super::tls::Tls;
use crate::{Error, Result};

/// A future that is ready on the first SIGTERM or SIGINT after the call. Needs a runtime.
///
/// # Errors
/// [`Error::Io`] when the system does not let a process listen for signals.
#[cfg(unix)]
pub(super) fn stop_signal() -> Result<impl std::future::Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::SignalKind;

    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Reads the certificate and its key again at every SIGHUP, if there is TLS; a server without goes on. Needs a
/// runtime.
///
/// # Errors
/// As [`stop_signal`].
#[cfg(unix)]
pub(super) fn reload_at_hangup(tls: Option<Arc<Tls>>) -> Result<()> {
    let mut hangup = listen(tokio::signal::unix::SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match &tls {
                Some(tls) => reload(tls),
                None => tracing::info!("SIGHUP: without TLS there is nothing to read again"),
            }
        }
    });
    Ok(())
}

fn reload(tls: &Tls) {
    match tls.reload() {
        Ok(()) => tracing::info!("certificate and key were read again"),
        Err(error) => tracing::error!(%error, "the certificate from before stays"),
    }
    if let Some(problem) = tls.out_of_date() {
        tracing::warn!("{problem}");
    }
}

#[cfg(unix)]
fn listen(kind: tokio::signal::unix::SignalKind) -> Result<tokio::signal::unix::Signal> {
    let path = || "signals".to_owned();
    tokio::signal::unix::signal(kind).map_err(|source| Error::Io {
        action: "listen for",
        path: path(),
        source,
    })
}
