//! Kernel tables and the choice among rows: written once, for every backend.

use crate::{
    Candidate, DeviceInfo, Error, Extents, Needs, Numerics, Operator, Result, Steps, Want,
    op::IoSet,
};
use std::ops::RangeInclusive;

/// The bits of a decomposition. A fused row that claims them is compared with its steps byte by
/// byte; under [`Numerics::RowInvariant`] no other fused row is taken, so that falling back to the
/// steps never changes a result.
pub const STEPS: &str = "steps";

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
    /// (tested), so the token count may choose among them.
    pub bits: &'static str,
    /// What it adds products in.
    pub accumulator: Accumulator,
    /// Token counts it takes.
    pub tokens: RangeInclusive<u64>,
    /// Whether it takes the descriptor; never sees a token count.
    pub accepts: fn(&D, &DeviceInfo) -> std::result::Result<(), &'static str>,
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
    let mut steps = Steps::default();
    let names = <D::Io<crate::Ref, crate::Ref> as IoSet<crate::Ref, crate::Ref>>::NAMES;
    let mut own = names.iter().enumerate().map(|(i, (_, dir))| match dir {
        crate::Dir::In => crate::Slot::In(crate::Ref::Operand(i)),
        crate::Dir::Out | crate::Dir::InOut => crate::Slot::Out(crate::Ref::Operand(i)),
    });
    d.decompose(D::Io::from_slots(&mut own), &mut steps);
    !steps.is_empty()
}

/// Whether the conformance run of a tuned row is on record for the device's board, or why not.
pub type Proven<'a, D, L> = &'a dyn Fn(&Row<D, L>) -> std::result::Result<(), String>;

/// A row, and why it is not taken if it is not.
pub type Verdict<D, L> = (&'static Row<D, L>, std::result::Result<(), String>);

/// Every row with its verdict, best first: what the `kernels` table prints.
pub fn verdicts<D: Operator, L>(
    rows: &'static [Row<D, L>],
    d: &D,
    info: &DeviceInfo,
    want: &Want,
    forced: Option<&str>,
    proven: Proven<'_, D, L>,
) -> Vec<Verdict<D, L>> {
    let fused = is_fused(d);
    let judge = |row: &Row<D, L>| -> std::result::Result<(), String> {
        if !row.arch.contains(&info.arch.as_str()) {
            return Err(format!("made for {}", row.arch.join(", ")));
        }
        (row.accepts)(d, info)?;
        if let Some(name) = forced {
            return if row.name == name { Ok(()) } else { Err(format!("overridden by {name}")) };
        }
        if row.rank == Rank::Tuned {
            proven(row)?;
        }
        if row.accumulator != Accumulator::F32 {
            return Err("adds products in less than f32, so it is taken by name only".into());
        }
        if row.numerics < want.numerics {
            return Err(format!("promises {:?} only", row.numerics));
        }
        if fused && want.numerics == Numerics::RowInvariant && row.bits != STEPS {
            return Err("its bits are not those of the decomposition".into());
        }
        Ok(())
    };
    let mut list: Vec<_> = rows.iter().map(|r| (r, judge(r))).collect();
    list.sort_by_key(|(r, _)| std::cmp::Reverse(r.rank));
    list
}

/// The ladder for a descriptor: the best set of rows with equal bits that covers every token count,
/// whatever the plan's own limit, so that a decode plan and a prefill plan land on the same bits.
///
/// # Errors
/// [`Error::Unsupported`] with the reason of each row.
pub fn choose<D: Operator, L>(
    rows: &'static [Row<D, L>],
    d: &D,
    info: &DeviceInfo,
    want: &Want,
    forced: Option<&str>,
    proven: Proven<'_, D, L>,
) -> Result<Ladder<D, L>> {
    let list = verdicts(rows, d, info, want, forced, proven);
    let fit: Vec<_> = list.iter().filter(|(_, v)| v.is_ok()).map(|(r, _)| *r).collect();
    for first in &fit {
        let set: Vec<_> = fit.iter().copied().filter(|r| r.bits == first.bits).collect();
        if forced.is_some() || covers_everything(&set) {
            let bytes = set.iter().map(|r| (r.needs)(d, &want.limits).workspace_bytes).max();
            let needs = Needs { workspace_bytes: bytes.unwrap_or(0) };
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

/// [`verdicts`] as the candidates of [`crate::Device::candidates`].
pub fn candidates<D: Operator, L>(
    rows: &'static [Row<D, L>],
    d: &D,
    info: &DeviceInfo,
    want: &Want,
    forced: Option<&str>,
    proven: Proven<'_, D, L>,
) -> Vec<Candidate> {
    verdicts(rows, d, info, want, forced, proven)
        .into_iter()
        .map(|(row, verdict)| Candidate {
            kernel: row.name,
            rank: row.rank,
            numerics: row.numerics,
            bits: row.bits,
            accumulator: row.accumulator,
            verdict: verdict.map(|()| (row.needs)(d, &want.limits)),
        })
        .collect()
}
