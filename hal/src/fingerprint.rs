//! What numbers a set of plans computes.

use crate::{Operator, Plan};
use std::collections::BTreeSet;

/// The set of (operator, descriptor, bits) behind an engine, as one number. Two engines with equal
/// fingerprints compute equal bytes; it salts prefix caches on disk and stands in traces.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    lines: BTreeSet<String>,
}

impl Fingerprint {
    /// Add a plan.
    pub fn add<D: Operator>(&mut self, plan: &Plan<D>) {
        self.lines.insert(format!("{}{} {}", D::ID, plan.descriptor().line(), plan.bits()));
    }
    /// The plans, one line each, sorted.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
    /// FNV-1a over the sorted lines: stable across processes and hosts.
    pub fn value(&self) -> u64 {
        let bytes = self.lines.iter().flat_map(|l| l.bytes().chain([b'\n']));
        bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.value())
    }
}
