//! Which part of the weights a rank holds.

use std::ops::Range;

use crate::error::{Error, Result};

/// A rank's place among those that share the weights: experts by ranges of ids, the head by ranges
/// of vocabulary rows. Everything else is held whole by every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    rank: u64,
    ranks: u64,
}

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share { rank: 0, ranks: 1 };

    /// The share of `rank` of `ranks`.
    ///
    /// # Errors
    /// A rank that is not among the ranks.
    pub fn new(rank: u64, ranks: u64) -> Result<Self> {
        if rank < ranks {
            return Ok(Self { rank, ranks });
        }
        Err(Error::argument("rank", format!("{rank} is not below the {ranks} ranks")))
    }

    /// Ranks that share.
    pub fn ranks(&self) -> u64 {
        self.ranks
    }

    /// This rank's equal part of `0..whole`.
    ///
    /// # Errors
    /// When the ranks do not divide `whole`, named `what`.
    pub fn of(&self, what: &str, whole: u64) -> Result<Range<u64>> {
        if !whole.is_multiple_of(self.ranks) {
            let problem = format!("{whole} is not divisible by {} ranks", self.ranks);
            return Err(Error::argument(what, problem));
        }
        let part = whole / self.ranks;
        Ok(self.rank * part..(self.rank + 1) * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal_ranges_or_refused() {
        let share = Share::new(2, 4).unwrap();
        assert_eq!(share.of("n_routed_experts", 384).unwrap(), 192..288);
        assert_eq!(Share::WHOLE.of("vocab_size", 7).unwrap(), 0..7);
        let message = share.of("vocab_size", 7).unwrap_err().to_string();
        assert_eq!(message, "vocab_size: 7 is not divisible by 4 ranks");
        assert!(Share::new(4, 4).is_err());
    }
}
