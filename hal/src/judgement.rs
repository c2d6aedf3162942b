//! The choice among rows, apart from their operators' types: compiled once, and not for each operator
//! of each backend.

use crate::{
    Accumulator, Candidate, Needs, Numerics, Op, Operator, PORTABLE, Rank, Row, Want, steps_bits,
};
use std::ops::RangeInclusive;

/// What a row says of itself, whatever its operator.
pub(crate) struct Terms {
    name: &'static str,
    arch: &'static [&'static str],
    rank: Rank,
    numerics: Numerics,
    bits: &'static str,
    accumulator: Accumulator,
    tokens: RangeInclusive<u64>,
}

impl Terms {
    pub(crate) fn of<D: Operator, L>(row: &Row<D, L>) -> Self {
        let &Row { name, arch, rank, numerics, bits, accumulator, ref tokens, .. } = row;
        Self { name, arch, rank, numerics, bits, accumulator, tokens: tokens.clone() }
    }
}

/// What only a row itself can answer.
#[derive(Clone, Copy)]
pub(crate) enum Question {
    /// Whether it takes the descriptor.
    Accepts,
    /// Whether its conformance run is on record.
    Proven,
    /// Whether it is worth its launches.
    Suits,
}

type Verdict = std::result::Result<(), String>;

/// The place of a row, and why it is not taken if it is not.
pub(crate) type Placed = (usize, Verdict);

/// The bits of a decomposition with those that `step_bits` says of its steps; none of a primitive.
pub(crate) fn fallback(
    steps: &[Op],
    step_bits: &dyn Fn(&Op) -> Option<&'static str>,
) -> Option<String> {
    let chosen = |op: &Op| (op.id(), step_bits(op).unwrap_or(PORTABLE));
    (!steps.is_empty()).then(|| steps_bits(steps.iter().map(chosen)))
}

/// What rows are judged by.
pub(crate) struct Criteria<'a> {
    pub(crate) arch: &'a str,
    pub(crate) want: &'a Want,
    /// The row that was named, or the bits of several.
    pub(crate) forced: Option<&'a str>,
    /// The bits of the decomposition, of a fused operator.
    pub(crate) fallback: Option<&'a str>,
}

impl Criteria<'_> {
    /// The verdict on each row, best first; `ask` puts a question to the row at a place.
    pub(crate) fn verdicts(
        &self,
        rows: &[Terms],
        ask: &dyn Fn(usize, Question) -> Verdict,
    ) -> Vec<Placed> {
        let judged = |(at, row)| (at, self.judge(row, &|question| ask(at, question)));
        let mut list: Vec<_> = rows.iter().enumerate().map(judged).collect();
        list.sort_by_key(|(at, _)| std::cmp::Reverse(rows[*at].rank));
        list
    }

    fn judge(&self, row: &Terms, ask: &dyn Fn(Question) -> Verdict) -> Verdict {
        if !row.arch.contains(&self.arch) {
            return Err(format!("made for {}", row.arch.join(", ")));
        }
        ask(Question::Accepts)?;
        if let Some(name) = self.forced {
            let named = row.name == name || row.bits == name;
            return if named { Ok(()) } else { Err(format!("overridden by {name}")) };
        }
        if row.rank == Rank::Tuned {
            ask(Question::Proven)?;
        }
        ask(Question::Suits)?;
        if row.accumulator != Accumulator::F32 {
            return Err("adds products in less than f32, so it is taken by name only".into());
        }
        if row.numerics < self.want.numerics {
            return Err(format!("promises {:?} only", row.numerics));
        }
        match self.fallback {
            Some(bits) if self.want.numerics == Numerics::RowInvariant && row.bits != bits => {
                Err(format!("its bits are `{}`, those of the decomposition `{bits}`", row.bits))
            }
            _ => Ok(()),
        }
    }
}

/// The places of the best rows with equal bits that cover every token count; of rows that were named,
/// of however many they cover. Else the reason of each row.
pub(crate) fn best_set(
    rows: &[Terms],
    verdicts: &[Placed],
    forced: bool,
) -> std::result::Result<Vec<usize>, String> {
    let fit: Vec<_> = verdicts.iter().filter(|(_, v)| v.is_ok()).map(|(at, _)| *at).collect();
    for first in &fit {
        let equal = |at: &usize| rows[*at].bits == rows[*first].bits;
        let set: Vec<_> = fit.iter().copied().filter(equal).collect();
        if forced || covers_everything(rows, &set) {
            return Ok(set);
        }
    }
    let reason =
        |(at, verdict): &Placed| Some(format!("{}: {}", rows[*at].name, verdict.as_ref().err()?));
    let mut reasons: Vec<_> = verdicts.iter().filter_map(reason).collect();
    if !fit.is_empty() {
        reasons.push("no set of rows with equal bits covers every token count".into());
    }
    if rows.is_empty() {
        reasons.push("no kernel yet".into());
    }
    Err(reasons.join("; "))
}

/// Rows with their verdicts as candidates; `needs` is asked of those that are taken.
pub(crate) fn candidates(
    rows: &[Terms],
    verdicts: Vec<Placed>,
    needs: &dyn Fn(usize) -> Needs,
) -> Vec<Candidate> {
    let candidate = |(at, verdict): Placed| {
        let &Terms { name: kernel, rank, numerics, bits, accumulator, .. } = &rows[at];
        let verdict = verdict.map(|()| needs(at));
        Candidate { kernel, rank, numerics, bits, accumulator, verdict }
    };
    verdicts.into_iter().map(candidate).collect()
}

fn covers_everything(rows: &[Terms], set: &[usize]) -> bool {
    let mut next = 0u64;
    loop {
        let tokens = set.iter().map(|at| &rows[*at].tokens);
        match tokens.filter(|t| t.contains(&next)).map(|t| *t.end()).max() {
            None => return false,
            Some(u64::MAX) => return true,
            Some(end) => next = end + 1,
        }
    }
}
