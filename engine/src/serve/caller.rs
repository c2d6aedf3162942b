//! Whoever waits for a piece of work.

use std::sync::{Arc, Weak};

use super::api::error::ApiError;
use super::job::Failure;

/// The end of work's line to a [`Caller`]; the caller hangs up by dropping it.
#[derive(Debug, Default)]
pub(super) struct Line(Arc<()>);

/// What work knows about whoever waits for it.
#[derive(Debug)]
pub(super) struct Caller(Weak<()>);

impl Line {
    /// The other end.
    pub(super) fn caller(&self) -> Caller {
        Caller(Arc::downgrade(&self.0))
    }
}

impl Caller {
    /// Work asks between its pieces whether to go on.
    ///
    /// # Errors
    /// When nobody waits any longer; nobody hears of it.
    pub(super) fn check_waiting(&self) -> Result<(), ApiError> {
        if self.0.strong_count() > 0 {
            return Ok(());
        }
        Err(Failure::Faulted("the client hung up".to_owned()).into())
    }
}
