//! Kernel tables and the choice among rows: written once, for every backend.

use crate::judgement::{self, Criteria, Placed, Question, Terms, best_set, fallback};
use crate::{
    Candidate, DeviceInfo, Error, Extents, Needs, Numerics, Op, Operator, Result, Steps, Want,
};
use std::ops::RangeInclusive;

/// How much work went into a row; higher is preferred.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rank {
    /// Plain tiles, readable, any shape the contract allows.
    Portable,
    /// Tuned for an architecture; taken only where its proof on the board is recorded.
    Tuned,
}

/// What sums of products are kept in before f32: the bound that outputs are compared within follows
/// from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Accumulator {
    /// f32 or wider.
    #[default]
    F32,
    /// Hopper's FP8 units: 32 products, each cut to 13 fraction bits of the largest one's binade,
    /// and their sum cut to 13 of its own. The demo checkpoint fails its golden files with it, so
    /// such a row is only taken when it is named.
    Fp8Hopper,
}

impl Accumulator {
    /// What it adds to the factor of `Σ|terms|`: each of 32 products loses less than 2^-13 of the
    /// largest, the sum less than 2^-13 of itself.
    pub fn gamma(self) -> f64 {
        match self {
            Accumulator::F32 => 0.0,
            Accumulator::Fp8Hopper => 33.0 / 8192.0,
        }
    }
}

/// The bits of plain kernels.
pub const PORTABLE: &str = "portable";

/// One kernel. `L` is the backend's launch function type.
pub struct Row<D: Operator, L: 'static> {
    /// Unique among the rows of the operator.
    pub name: &'static str,
    /// Architectures it runs on.
    pub arch: &'static [&'static str],
    /// Preference.
    pub rank: Rank,
    /// What it promises.
    pub numerics: Numerics,
    /// Rows of one operator with the same `bits` give the same bytes for every row of data
    /// (tested), so the token count may choose among them. A fused row names the bits of the
    /// decomposition that it equals, see [`crate::STEPS`].
    pub bits: &'static str,
    /// What it adds products in.
    pub accumulator: Accumulator,
    /// Token counts it takes.
    pub tokens: RangeInclusive<u64>,
    /// Whether it takes the descriptor; never sees a token count.
    pub accepts: fn(&D, &DeviceInfo) -> std::result::Result<(), &'static str>,
    /// Whether it is worth its launches for the descriptor: a tuned row that is not is taken by name
    /// only.
    pub suits: fn(&D) -> bool,
    /// What it needs for the largest launch.
    pub needs: fn(&D, &Extents) -> Needs,
    /// How it is launched.
    pub launch: L,
}

/// The rows chosen for a plan: one `bits`, covering every token count.
pub struct Ladder<D: Operator, L: 'static> {
    /// The rows, best first.
    pub rows: Vec<&'static Row<D, L>>,
    /// The largest need among them.
    pub needs: Needs,
}

impl<D: Operator, L> Ladder<D, L> {
    /// The row for `tokens` rows of data; `None` only when an override covers less than all.
    pub fn at(&self, tokens: u64) -> Option<&'static Row<D, L>> {
        self.rows.iter().copied().find(|r| r.tokens.contains(&tokens))
    }
    /// The bits all rows share.
    pub fn bits(&self) -> &'static str {
        self.rows.first().map_or("none", |r| r.bits)
    }
}

/// Whether the operator has a decomposition.
pub fn is_fused<D: Operator>(d: &D) -> bool {
    !Steps::of(d).is_empty()
}

/// A row, and why it is not taken if it is not.
pub type Verdict<D, L> = (&'static Row<D, L>, std::result::Result<(), String>);

/// Whether the conformance run of a tuned row is on record for the device's board, or why not.
pub type Proven<'a, D, L> = &'a dyn Fn(&Row<D, L>) -> std::result::Result<(), String>;

/// What the rows of an operator are judged by.
pub struct Judge<'a, D: Operator, L: 'static> {
    /// The device.
    pub info: &'a DeviceInfo,
    /// What the caller asks for.
    pub want: &'a Want,
    /// The row that was named for the operator, or the bits of several.
    pub forced: Option<&'a str>,
    /// Which rows are on record.
    pub proven: Proven<'a, D, L>,
    /// The bits that this device chooses for a step of a fused operator, if it has a row for it.
    pub step_bits: &'a dyn Fn(&Op) -> Option<&'static str>,
}

impl<D: Operator, L> Judge<'_, D, L> {
    /// Every row with its verdict, best first: what the `kernels` table prints.
    pub fn verdicts(&self, rows: &'static [Row<D, L>], d: &D) -> Vec<Verdict<D, L>> {
        let (_, verdicts) = self.verdicts_on(rows, d);
        verdicts.into_iter().map(|(at, verdict)| (&rows[at], verdict)).collect()
    }

    /// What rows say, and by place the verdicts, best first.
    fn verdicts_on(&self, rows: &'static [Row<D, L>], d: &D) -> (Vec<Terms>, Vec<Placed>) {
        let fallback = fallback(&Steps::of(d).ops(), self.step_bits);
        let terms: Vec<_> = rows.iter().map(Terms::of).collect();
        let ask = |at: usize, question| {
            let row = &rows[at];
            match question {
                Question::Accepts => (row.accepts)(d, self.info).map_err(String::from),
                Question::Proven => (self.proven)(row),
                Question::Suits if (row.suits)(d) => Ok(()),
                Question::Suits => {
                    let why = "plain kernels are faster at this size, so it is taken by name only";
                    Err(why.into())
                }
            }
        };
        let Self { info, want, forced, .. } = *self;
        let bench = Criteria { arch: &info.arch, want, forced, fallback: fallback.as_deref() };
        let verdicts = bench.verdicts(&terms, &ask);
        (terms, verdicts)
    }

    /// The ladder for a descriptor: the best set of rows with equal bits that covers every token
    /// count, whatever the plan's own limit, so that a decode plan and a prefill plan land on the
    /// same bits.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the reason of each row.
    pub fn choose(&self, rows: &'static [Row<D, L>], d: &D) -> Result<Ladder<D, L>> {
        let (terms, verdicts) = self.verdicts_on(rows, d);
        let set = best_set(&terms, &verdicts, self.forced.is_some())
            .map_err(|reason| Error::Unsupported { op: D::ID.into(), reason })?;
        let rows: Vec<_> = set.into_iter().map(|at| &rows[at]).collect();
        let bytes = rows.iter().map(|r| (r.needs)(d, &self.want.limits).workspace_bytes);
        let needs = Needs { workspace_bytes: bytes.max().unwrap_or(0) };
        Ok(Ladder { rows, needs })
    }

    /// [`Judge::verdicts`] as the candidates of [`crate::Device::candidates`].
    pub fn candidates(&self, rows: &'static [Row<D, L>], d: &D) -> Vec<Candidate> {
        let (terms, verdicts) = self.verdicts_on(rows, d);
        let needs = |at: usize| (rows[at].needs)(d, &self.want.limits);
        judgement::candidates(&terms, verdicts, &needs)
    }
}
