//! Bodies of requests on the host.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::options::BodyLimits;
use super::places::Places;

/// What places of the host's memory are counted in.
const PLACE_BYTES: usize = 1 << 10;

/// Bytes of a body that find room among the starts of others.
const START_BYTES: usize = 1 << 20;

/// Bounds the memory that the bodies of all requests take, from when they arrive until their
/// prompts are tokenised. What has arrived counts, not what was announced. The starts of bodies
/// and what is behind them are counted apart: large bodies, however slow, take no more of the
/// small ones' room than small ones do.
pub(super) struct BodyRoom {
    starts: Arc<Semaphore>,
    rests: Arc<Semaphore>,
}

/// The room of one body, given back when dropped.
#[derive(Debug)]
pub(super) struct HeldRoom {
    start: Places,
    rest: Places,
}

impl BodyRoom {
    /// Room within `limits`.
    pub(super) fn new(limits: &BodyLimits) -> Self {
        let bytes = (limits.held_bytes / 2).max(limits.bytes);
        let places = || {
            let places = bytes.div_ceil(PLACE_BYTES).min(Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(places))
        };
        Self { starts: places(), rests: places() }
    }

    /// The room of a body of which nothing has arrived.
    pub(super) fn body(&self) -> HeldRoom {
        HeldRoom { start: Places::none(&self.starts), rest: Places::none(&self.rests) }
    }
}

impl HeldRoom {
    /// Room for the `bytes` that a body has grown to; false when others hold too much.
    #[must_use]
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        let (start, rest) = (bytes.min(START_BYTES), bytes.saturating_sub(START_BYTES));
        self.start.grow_to(start.div_ceil(PLACE_BYTES))
            && self.rest.grow_to(rest.div_ceil(PLACE_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn small_bodies_find_room_beside_large_ones() {
        let (bytes, timeout) = (4 * START_BYTES, Duration::ZERO);
        let room = BodyRoom::new(&BodyLimits { bytes, timeout, held_bytes: 8 * START_BYTES });
        let mut large = [room.body(), room.body()];
        assert!(large.iter_mut().all(|body| body.grow_to(2 * START_BYTES)));
        assert!(large[0].grow_to(4 * START_BYTES));
        assert!(!large[1].grow_to(2 * START_BYTES + 1));
        assert!(!room.body().grow_to(START_BYTES + 1));
        let mut small = [room.body(), room.body()];
        assert!(small.iter_mut().all(|body| body.grow_to(1) && body.grow_to(START_BYTES)));
        assert!(!room.body().grow_to(1));
        drop(small);
        let [first, mut second] = large;
        drop(first);
        assert!(room.body().grow_to(1) && second.grow_to(4 * START_BYTES));
    }

    #[test]
    fn the_largest_body_fits_alone() {
        let (bytes, timeout) = (3 * START_BYTES, Duration::ZERO);
        let room = BodyRoom::new(&BodyLimits { bytes, timeout, held_bytes: 0 });
        assert!(room.body().grow_to(bytes));
    }
}
