//! How many replies may be under way, and when a refused one should come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest wait that is ever suggested.
const MAX_RETRY_AFTER_SECONDS: u64 = 60;

/// Counts replies from before the text of their request is tokenised until the request is over.
#[derive(Clone, Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    total: u32,
    /// Running mean of how long a request holds its place, in microseconds; 0 before the first.
    mean_us: Arc<AtomicU64>,
}

/// Places of one request, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    admission: Admission,
    since: Instant,
    _places: OwnedSemaphorePermit,
    /// Memory for the request's pictures.
    room: Vec<OwnedSemaphorePermit>,
}

impl Permit {
    /// When the request was let in: behind the reading of its body, before its prompt was tokenised.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Holds on to the memory of the request's pictures as well.
    pub(super) fn keep(&mut self, room: Vec<OwnedSemaphorePermit>) {
        self.room.extend(room);
    }
}

impl Admission {
    /// Places for `total` replies.
    pub fn new(total: u32) -> Self {
        // The semaphore counts fewer than a `u32` on 32-bit hosts only.
        let places = usize::try_from(total).unwrap_or(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(places)), total, mean_us: Arc::default() }
    }

    /// Places for `replies` replies, unless too many are taken.
    pub fn admit(&self, replies: u32) -> Option<Permit> {
        let places = Arc::clone(&self.places).try_acquire_many_owned(replies).ok()?;
        Some(Permit {
            admission: self.clone(),
            since: Instant::now(),
            _places: places,
            room: Vec::new(),
        })
    }

    /// Seconds until a place is likely to be free: places come back at the rate of their number
    /// over the mean time that one is held. From 1 to 60.
    pub fn retry_after_seconds(&self) -> u64 {
        let between_us = self.mean_us.load(Ordering::Relaxed) / u64::from(self.total.max(1));
        between_us.div_ceil(1_000_000).clamp(1, MAX_RETRY_AFTER_SECONDS)
    }

    /// Places there are.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Replies under way.
    pub fn under_way(&self) -> usize {
        usize::try_from(self.total)
            .unwrap_or(Semaphore::MAX_PERMITS)
            .saturating_sub(self.places.available_permits())
    }

    /// Returns when no request is under way. Admit none meanwhile.
    pub async fn drained(&self) {
        // Never closed, so this fails never; either way nobody waits any longer.
        let _ = self.places.acquire_many(self.total).await;
    }

    fn note_held(&self, held: Duration) {
        let held_us = u64::try_from(held.as_micros()).unwrap_or(u64::MAX);
        let mean = |mean: u64| if mean == 0 { held_us } else { mean / 8 * 7 + held_us / 8 };
        // A lost update shifts an estimate.
        self.mean_us.store(mean(self.mean_us.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.note_held(self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        let admission = Admission::new(2);
        let first = admission.admit(1).unwrap();
        let _second = admission.admit(1).unwrap();
        assert!(admission.admit(1).is_none());
        assert_eq!(admission.under_way(), 2);
        drop(first);
        assert_eq!(admission.under_way(), 1);
        assert!(admission.admit(2).is_none() && admission.admit(1).is_some());
    }

    #[test]
    fn the_suggested_wait_follows_the_rate() {
        let admission = Admission::new(2);
        assert_eq!(admission.retry_after_seconds(), 1);
        admission.note_held(Duration::from_secs(20));
        assert_eq!(admission.retry_after_seconds(), 10);
        admission.note_held(Duration::from_secs(100_000));
        assert_eq!(admission.retry_after_seconds(), 60);
    }
}
