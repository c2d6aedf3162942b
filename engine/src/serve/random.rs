//! Numbers that nobody can foresee.

use std::hash::{BuildHasher, RandomState};

/// A new number each time: the keys of a hash come from the system's randomness.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
