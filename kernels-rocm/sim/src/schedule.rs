//! Orders and times that the hardware is free to choose.

/// When a memory operation takes effect, between its issue and the wait that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timing {
    /// At issue.
    Eager,
    /// As late as waits permit.
    Lazy,
}

/// How matrix instructions add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixRule {
    /// Products and sums in f64, rounded once.
    Exact,
    /// Without scales: as measured on CDNA3, which aligns products in groups and cuts them.
    Cdna3,
}

/// One of the ways in which the hardware may run a launch. A right kernel gives the same bits under all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// When memory operations take effect.
    pub timing: Timing,
    /// 0 runs waves in order, each until it waits; anything else interleaves them pseudo-randomly. It also
    /// decides what registers hold at first.
    pub seed: u64,
    /// Workgroups that run at a time, at least 1. Those that wait for each other must all be among them.
    pub resident: usize,
    /// Whether dies have caches of their own, which only what orders memory brings together.
    pub caches: bool,
    /// Threads over which the workgroups of a launch are spread, unless they have means to wait for each other. A
    /// right kernel gives the same bits with any number.
    pub threads: usize,
    /// Instructions after which a launch counts as hung.
    pub max_steps: u64,
    /// How matrix instructions add.
    pub matrix: MatrixRule,
}

impl Schedule {
    /// Memory at issue, waves in order.
    #[must_use]
    pub fn eager() -> Self {
        Self {
            timing: Timing::Eager,
            seed: 0,
            resident: 32,
            caches: false,
            threads: 1,
            max_steps: 4_000_000_000,
            matrix: MatrixRule::Exact,
        }
    }

    /// Memory as late as may be, waves in the order that `seed` says.
    #[must_use]
    pub fn lazy(seed: u64) -> Self {
        Self { timing: Timing::Lazy, seed, ..Self::eager() }
    }

    /// The same with caches of the dies.
    #[must_use]
    pub fn with_caches(self) -> Self {
        Self { caches: true, ..self }
    }

    /// Four schedules that differ as much as they can; kernels must agree under all of them.
    #[must_use]
    pub fn four() -> [Self; 4] {
        let interleaved = Self { seed: 7, ..Self::eager() };
        [Self::eager(), interleaved, Self::lazy(0), Self::lazy(11).with_caches()]
    }
}

/// A small generator (xorshift).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % bound as u64) as usize
    }
}
