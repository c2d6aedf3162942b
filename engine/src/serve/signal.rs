//! Signals that ask the server to stop.

use crate::{Error, Result};

/// A future that is ready on the first SIGTERM or SIGINT after the call. Needs a runtime.
///
/// # Errors
/// [`Error::Io`] when the system does not let a process listen for signals.
#[cfg(unix)]
pub(super) fn stop_signal() -> Result<impl std::future::Future<Output = ()> + Send + 'static> {
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
