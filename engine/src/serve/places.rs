//! Places that what grows takes of a bound.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places of one bound, given back when dropped.
#[derive(Debug)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    held: OwnedSemaphorePermit,
}

impl Places {
    /// None of `all`.
    pub(super) fn none(all: &Arc<Semaphore>) -> Self {
        let held = Arc::clone(all).try_acquire_many_owned(0);
        Self { all: Arc::clone(all), held: held.expect("there is always room for nothing") }
    }

    /// As many as `places`, or more where more are held; false when others hold too many.
    #[must_use]
    pub(super) fn grow_to(&mut self, places: usize) -> bool {
        let more = places.saturating_sub(self.held.num_permits());
        let more = u32::try_from(more).ok();
        let more = more.and_then(|more| Arc::clone(&self.all).try_acquire_many_owned(more).ok());
        more.map(|more| self.held.merge(more)).is_some()
    }
}
