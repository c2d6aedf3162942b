//! Points in streams.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A point in a stream; the time when it was passed, once it was.
pub(crate) type Mark = Arc<OnceLock<Instant>>;

/// An event.
pub(crate) struct Event {
    pub(crate) board: usize,
    /// Whether it has a time.
    pub(crate) is_timed: bool,
    pub(crate) last: Last,
}

/// What an event was last recorded as.
#[derive(Clone)]
pub(crate) enum Last {
    Never,
    At(Mark),
    /// In a capture, behind some of its nodes.
    Captured {
        capture: usize,
        nodes: Vec<usize>,
    },
}
