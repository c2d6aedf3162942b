//! The exchange between the ranks of one reference group.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tandem_hal::{Error, Result};

/// What the ranks share: one slot each for the exchange in progress.
#[derive(Default)]
struct Exchange {
    /// Number of the exchange in progress.
    round: u64,
    posted: Vec<Option<Arc<Vec<f32>>>>,
    /// What the finished round gave, for ranks that have not collected it.
    finished: Vec<Arc<Vec<f32>>>,
    collected: usize,
    /// A rank that failed; every later exchange fails on it.
    failed: Option<u32>,
}

/// One rank's membership.
pub struct Group {
    rank: u32,
    ranks: u32,
    shared: Arc<(Mutex<Exchange>, Condvar)>,
    patience: Duration,
}

impl Group {
    /// A group of `ranks`; a rank that keeps the others waiting for `patience` is given up.
    pub fn of(ranks: u32, patience: Duration) -> Vec<Group> {
        let posted = vec![None; ranks as usize];
        let shared =
            Arc::new((Mutex::new(Exchange { posted, ..Exchange::default() }), Condvar::new()));
        (0..ranks).map(|rank| Group { rank, ranks, shared: shared.clone(), patience }).collect()
    }
    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }
    /// Ranks of the group.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Post this rank's values and collect everyone's, in rank order.
    ///
    /// # Errors
    /// [`Error::Peer`] naming a rank that failed or did not arrive in time; on all ranks alike.
    pub fn gather(&self, mine: Vec<f32>) -> Result<Vec<Arc<Vec<f32>>>> {
        let (lock, wake) = &*self.shared;
        // Every update below leaves the exchange whole, so a poisoned lock still guards it.
        let mut state = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rank) = state.failed {
            return Err(Error::Peer { rank });
        }
        let deadline = Instant::now() + self.patience;
        // A fast rank may be here again before the others collected the round before.
        while !state.finished.is_empty() {
            state = self.wait(state, deadline)?;
        }
        let round = state.round;
        state.posted[self.rank as usize] = Some(Arc::new(mine));
        if state.posted.iter().all(Option::is_some) {
            state.finished = state.posted.iter_mut().filter_map(Option::take).collect();
            state.round += 1;
            wake.notify_all();
        }
        while state.round == round {
            state = self.wait(state, deadline)?;
        }
        let all = state.finished.clone();
        state.collected += 1;
        if state.collected == self.ranks as usize {
            state.collected = 0;
            state.finished.clear();
            wake.notify_all();
        }
        Ok(all)
    }

    fn wait<'a>(
        &self,
        state: std::sync::MutexGuard<'a, Exchange>,
        deadline: Instant,
    ) -> Result<std::sync::MutexGuard<'a, Exchange>> {
        if let Some(rank) = state.failed {
            return Err(Error::Peer { rank });
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let mut state = state;
            let missing = state.posted.iter().position(Option::is_none).unwrap_or(0) as u32;
            state.failed = Some(missing);
            self.shared.1.notify_all();
            return Err(Error::Peer { rank: missing });
        }
        Ok(self.shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_collect_each_other_in_order_many_times() {
        let sums: Vec<f32> = std::thread::scope(|s| {
            let handles: Vec<_> = Group::of(3, Duration::from_secs(10))
                .into_iter()
                .map(|g| {
                    s.spawn(move || {
                        let mut last = 0.0;
                        for round in 0..100 {
                            let mine = vec![g.rank() as f32 * 1000.0 + round as f32];
                            let all = g.gather(mine).expect("all ranks are alive");
                            let want: Vec<f32> =
                                (0..3).map(|r| r as f32 * 1000.0 + round as f32).collect();
                            let got: Vec<f32> = all.iter().map(|v| v[0]).collect();
                            assert_eq!(got, want);
                            last = got.iter().sum();
                        }
                        last
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().expect("no rank panics")).collect()
        });
        assert_eq!(sums, [3297.0; 3]);
    }

    #[test]
    fn a_missing_rank_is_named_on_all() {
        let mut group = Group::of(2, Duration::from_millis(50));
        let (second, first) = (group.pop().expect("two"), group.pop().expect("two"));
        assert_eq!(first.gather(vec![1.0]), Err(Error::Peer { rank: 1 }));
        assert_eq!(second.gather(vec![1.0]), Err(Error::Peer { rank: 1 }));
    }
}
