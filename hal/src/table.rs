//! Kernel tables and the choice among rows: written once, for every backend.

use crate::{
    Candidate, DeviceInfo, Error, Extents, Needs, Numerics, Op, Operator, Result, Steps, Want,
    steps_bits,
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
        let steps = Steps::of(d).ops();
        let fallback = (!steps.is_empty()).then(|| {
            let chosen = |op: &Op| (op.id(), (self.step_bits)(op).unwrap_or(PORTABLE));
            steps_bits(steps.iter().map(chosen))
        });
        let mut list: Vec<_> =
            rows.iter().map(|r| (r, self.judge(r, d, fallback.as_deref()))).collect();
        list.sort_by_key(|(r, _)| std::cmp::Reverse(r.rank));
        list
    }

    /// `fallback`: the bits of the decomposition, of a fused operator.
    fn judge(
        &self,
        row: &Row<D, L>,
        d: &D,
        fallback: Option<&str>,
    ) -> std::result::Result<(), String> {
        if !row.arch.contains(&self.info.arch.as_str()) {
            return Err(format!("made for {}", row.arch.join(", ")));
        }
        (row.accepts)(d, self.info)?;
        if let Some(name) = self.forced {
            let named = row.name == name || row.bits == name;
            return if named { Ok(()) } else { Err(format!("overridden by {name}")) };
        }
        if row.rank == Rank::Tuned {
            (self.proven)(row)?;
        }
        if !(row.suits)(d) {
            return Err("plain kernels are faster at this size, so it is taken by name only".into());
        }
        if row.accumulator != Accumulator::F32 {
            return Err("adds products in less than f32, so it is taken by name only".into());
        }
        if row.numerics < self.want.numerics {
            return Err(format!("promises {:?} only", row.numerics));
        }
        match fallback {
            Some(bits) if self.want.numerics == Numerics::RowInvariant && row.bits != bits => {
                Err(format!("its bits are `{}`, those of the decomposition `{bits}`", row.bits))
            }
            _ => Ok(()),
        }
    }

    /// The ladder for a descriptor: the best set of rows with equal bits that covers every token
    /// count, whatever the plan's own limit, so that a decode plan and a prefill plan land on the
    /// same bits.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the reason of each row.
    pub fn choose(&self, rows: &'static [Row<D, L>], d: &D) -> Result<Ladder<D, L>> {
        let list = self.verdicts(rows, d);
        let fit: Vec<_> = list.iter().filter(|(_, v)| v.is_ok()).map(|(r, _)| *r).collect();
        for first in &fit {
            let set: Vec<_> = fit.iter().copied().filter(|r| r.bits == first.bits).collect();
            if self.forced.is_some() || covers_everything(&set) {
                let bytes = set.iter().map(|r| (r.needs)(d, &self.want.limits).workspace_bytes);
                let needs = Needs { workspace_bytes: bytes.max().unwrap_or(0) };
                return Ok(Ladder { rows: set, needs });
            }
        }
        let mut reasons: Vec<String> = list
            .iter()
            .filter_map(|(r, v)| Some(format!("{}: {}", r.name, v.as_ref().err()?)))
            .collect();
        if !fit.is_empty() {
            reasons.push("no set of rows with equal bits covers every token count".into());
        }
        if rows.is_empty() {
            reasons.push("no kernel yet".into());
        }
        Err(Error::Unsupported { op: D::ID.into(), reason: reasons.join("; ") })
    }

    /// [`Judge::verdicts`] as the candidates of [`crate::Device::candidates`].
    pub fn candidates(&self, rows: &'static [Row<D, L>], d: &D) -> Vec<Candidate> {
        let needs = |row: &Row<D, L>| (row.needs)(d, &self.want.limits);
        let candidate = |(row, verdict): Verdict<D, L>| Candidate {
            kernel: row.name,
            rank: row.rank,
            numerics: row.numerics,
            bits: row.bits,
            accumulator: row.accumulator,
            verdict: verdict.map(|()| needs(row)),
        };
        self.verdicts(rows, d).into_iter().map(candidate).collect()
    }
}

fn covers_everything<D: Operator, L>(rows: &[&Row<D, L>]) -> bool {
    let mut next = 0u64;
    loop {
        let reach = rows.iter().filter(|r| r.tokens.contains(&next)).map(|r| *r.tokens.end()).max();
        match reach {
            None => return false,
            Some(u64::MAX) => return true,
            Some(end) => next = end + 1,
        }
    }
}
