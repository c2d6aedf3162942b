//! Work that would hold up a task of the runtime.

use super::api::error::ApiError;
use super::job::Failure;

/// Runs what takes long on a thread for such things. It runs to its end even when nobody waits for
/// it any longer.
///
/// # Errors
/// Those of `work`; 500 when it panicked.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Failure::Faulted(format!("preparing the request failed: {error}")).into())
    })
}
