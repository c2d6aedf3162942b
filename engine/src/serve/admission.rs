//! How many replies may be under way, how many tokens of prompts may wait, and when a refused request should come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::places::Places;

/// Longest wait that is ever suggested.
const MAX_RETRY_AFTER_SECONDS: u64 = 60;

/// Counts replies from before the text of their request is tokenised until the request is over.
#[derive(Clone, Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    total: u32,
    /// Places that requests hold: whoever waits for all to come back takes those that are free already.
    held: Arc<AtomicUsize>,
    waiting: Arc<Semaphore>,
    waiting_tokens: u32,
    /// Running mean of how long a request holds its place, in microseconds; 0 before the first.
    mean_us: Arc<AtomicU64>,
}

/// Places of one request, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    admission: Admission,
    since: Instant,
    places: OwnedSemaphorePermit,
    waiting: WaitingTokens,
    /// Memory for the request's pictures.
    room: Vec<OwnedSemaphorePermit>,
}

/// What a request's prompts count among the tokens that wait, given back when dropped.
#[derive(Debug)]
pub struct WaitingTokens {
    places: Places,
    most: u32,
}

impl WaitingTokens {
    /// Counts `tokens`, unless too many wait. Whoever wants more than there may be counts as all of them: it waits
    /// alone.
    fn grow_to(&mut self, tokens: u64) -> bool {
        let tokens = tokens.min(u64::from(self.most));
        usize::try_from(tokens).is_ok_and(|tokens| self.places.grow_to(tokens))
    }
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

    /// Counts the request's prompts as `tokens` that wait; false when too many do.
    #[must_use]
    pub(super) fn wait_with(&mut self, tokens: u64) -> bool {
        self.waiting.grow_to(tokens)
    }

    /// What it counts among the tokens that wait, for whoever knows when they no longer do.
    pub(super) fn take_waiting(&mut self) -> WaitingTokens {
        std::mem::replace(&mut self.waiting, self.admission.no_tokens())
    }
}

impl Admission {
    /// Places for `total` replies, whose prompts may have `waiting_tokens` while they wait. Of none there would be none
    /// to take for a prompt that waits alone, so it is at least one.
    pub fn new(total: u32, waiting_tokens: u32) -> Self {
        // The semaphore counts fewer than a `u32` on 32-bit hosts only.
        let semaphore = |places| {
            Arc::new(Semaphore::new(usize::try_from(places).unwrap_or(Semaphore::MAX_PERMITS)))
        };
        let waiting_tokens = waiting_tokens.max(1);
        let (places, waiting) = (semaphore(total), semaphore(waiting_tokens));
        let (held, mean_us) = (Arc::default(), Arc::default());
        Self { places, total, held, waiting, waiting_tokens, mean_us }
    }

    fn no_tokens(&self) -> WaitingTokens {
        WaitingTokens { places: Places::none(&self.waiting), most: self.waiting_tokens }
    }

    /// Places for `replies` replies, unless too many are taken.
    pub fn admit(&self, replies: u32) -> Option<Permit> {
        let places = Arc::clone(&self.places).try_acquire_many_owned(replies).ok()?;
        self.held.fetch_add(places.num_permits(), Ordering::Relaxed);
        Some(Permit {
            admission: self.clone(),
            since: Instant::now(),
            places,
            waiting: self.no_tokens(),
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
        self.held.load(Ordering::Relaxed)
    }

    /// Tokens of prompts that wait.
    pub fn waiting_tokens(&self) -> usize {
        let most = usize::try_from(self.waiting_tokens).unwrap_or(Semaphore::MAX_PERMITS);
        most.saturating_sub(self.waiting.available_permits())
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
        self.admission.held.fetch_sub(self.places.num_permits(), Ordering::Relaxed);
        self.admission.note_held(self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        let admission = Admission::new(2, 1);
        let first = admission.admit(1).unwrap();
        let _second = admission.admit(1).unwrap();
        assert!(admission.admit(1).is_none());
        assert_eq!(admission.under_way(), 2);
        drop(first);
        assert_eq!(admission.under_way(), 1);
        assert!(admission.admit(2).is_none() && admission.admit(1).is_some());
    }

    #[test]
    fn tokens_wait_within_their_bound_and_alone_beyond_it() {
        let admission = Admission::new(9, 100);
        let admit = || admission.admit(1).unwrap();
        let (mut first, mut second) = (admit(), admit());
        assert!(first.wait_with(40) && second.wait_with(50) && second.wait_with(60));
        assert!(!first.wait_with(41), "it keeps what it has");
        assert_eq!(admission.waiting_tokens(), 100);
        let prefilling = second.take_waiting();
        drop(second);
        assert!(!admit().wait_with(1), "until its prefill begins");
        drop(prefilling);
        assert_eq!(admission.waiting_tokens(), 40);
        let mut longest = admit();
        assert!(!longest.wait_with(1 << 40));
        drop(first);
        assert!(longest.wait_with(1 << 40) && !admit().wait_with(1));
        drop(longest);
        assert_eq!(admission.waiting_tokens(), 0);
    }

    #[test]
    fn the_suggested_wait_follows_the_rate() {
        let admission = Admission::new(2, 1);
        assert_eq!(admission.retry_after_seconds(), 1);
        admission.note_held(Duration::from_secs(20));
        assert_eq!(admission.retry_after_seconds(), 10);
        admission.note_held(Duration::from_secs(100_000));
        assert_eq!(admission.retry_after_seconds(), 60);
    }
}
