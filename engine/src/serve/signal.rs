//! Signals that ask the server to stop.

use crate::{Error, Result};

/// Returns on the first SIGTERM or SIGINT after the call.
///
/// # Errors
/// [`Error::Io`] when the system does not let a process listen for signals.
#[cfg(unix)]
pub fn stop_signal() -> Result<impl std::future::Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};

    let listen = |kind| {
        let path = || "signals".to_owned();
        signal(kind).map_err(|source| Error::Io { action: "listen for", path: path(), source })
    };
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
