//! Comparing what was seen, output by output.

use super::{operator, stage::Seen};
use tandem_hal::{Accumulator, Dir, Extents, Facts, Op, Operand};
use tandem_reference::{
    Tolerance,
    compare::{Bias, Expected, judge, same_bytes},
};

/// Present outputs, in order of declaration.
pub fn outputs(facts: &Facts) -> impl Iterator<Item = (&'static str, &Operand)> {
    let written = facts.operands.iter().filter(|(_, dir, spec)| *dir != Dir::In && !spec.absent);
    written.map(|(name, _, spec)| (*name, spec))
}

/// The first output that is not byte for byte what was seen before.
pub fn same(
    facts: &Facts,
    extents: &Extents,
    got: &[Seen],
    want: &[Seen],
    why: &str,
) -> Option<String> {
    let ranks = got.iter().zip(want);
    ranks.into_iter().find_map(|(got, want)| {
        let pairs = got.outs.iter().zip(&want.outs);
        outputs(facts).zip(pairs).find_map(|((name, spec), (a, b))| {
            let verdict = same_bytes(spec.enc, &spec.shape(extents), a, b, why);
            verdict.err().map(|d| format!("{name} {d}"))
        })
    })
}

/// The first output that the reference's verdict refuses, of a row with this accumulator.
pub fn judged(
    op: &Op,
    facts: &Facts,
    extents: &Extents,
    accumulator: Accumulator,
    got: &[Seen],
    want: &[Vec<Expected>],
) -> Option<String> {
    got.iter().zip(want).find_map(|(got, want)| {
        let pairs = got.outs.iter().zip(want);
        outputs(facts).zip(pairs).find_map(|((name, spec), (got, want))| {
            let tolerance = operator::tolerance(op, name).of(accumulator);
            let verdict = judge(spec.enc, &spec.shape(extents), tolerance, got, want);
            verdict.err().map(|d| format!("{name} {d}"))
        })
    })
}

/// The first byte that changed where none may.
pub fn trespass(seen: &[Seen]) -> Option<String> {
    seen.iter().find_map(|s| s.trespass.clone())
}

/// On which sides roundings went.
pub fn bias(facts: &Facts, got: &[Seen], want: &[Vec<Expected>]) -> Bias {
    let mut bias = Bias::default();
    for (got, want) in got.iter().zip(want) {
        for ((_, spec), (got, want)) in outputs(facts).zip(got.outs.iter().zip(want)) {
            bias.add(spec.enc, got, &want.bytes);
        }
    }
    bias
}

/// A magnitude well below the sum it bounds: a card that promises a bound without giving what it is
/// stated in. A card may take magnitudes before a rounding in between, hence well.
pub fn magnitude(op: &Op, facts: &Facts, want: &[Vec<Expected>]) -> Option<String> {
    want.iter().find_map(|rank| {
        outputs(facts).zip(rank).find_map(|((name, _), want)| {
            let bounded = matches!(operator::tolerance(op, name), Tolerance::Bound { .. });
            let mut pairs = want.exact.iter().zip(&want.magnitude).enumerate();
            let short = |(_, (x, m)): &(usize, (&f64, &f64))| x.is_finite() && **m < 0.9 * x.abs();
            let (at, (x, m)) = pairs.find(short).filter(|_| bounded)?;
            Some(format!("{name}: the card gives Σ|terms| = {m:e} for {x:e} at element {at}"))
        })
    })
}
