//! Property 4: a row of data gives the same bits whatever else is in the launch.

use crate::conformance::{
    bench::{Bench, How},
    outputs,
    pick::{by_rows, pick},
    stage::Seen,
    subject::{Base, Subject},
};
use tandem_hal::{Dir, Error, Numerics, Result};
use tandem_reference::Random;

/// Batches at which kernels of every vendor change tiles.
const SIZES: [u64; 14] = [2, 3, 4, 7, 8, 9, 16, 17, 31, 33, 64, 65, 128, 129];

/// Rows alone, in reverse, padded, in batches of several sizes, under plans of other limits, and on
/// the sibling row.
///
/// # Errors
/// What planning or the device returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let n = case.extents.at(facts.rows);
    if let Some((name, devices)) = s.sibling {
        let Bench { numerics, .. } = s.bench;
        let other = Bench { case, facts, devices, numerics };
        match other.run(&case.extents, &base.data, &How::default()) {
            Err(Error::Unsupported { .. }) => {}
            seen => {
                let why = format!("row {name} promises the same bits");
                let differs = outputs::same(facts, &case.extents, &base.seen, &seen?, &why);
                if differs.is_some() {
                    return Ok(differs);
                }
            }
        }
    }
    let independent = facts.operands.iter().any(|(_, _, spec)| by_rows(spec, facts.rows));
    if s.promise < Numerics::RowInvariant || n == 0 || !independent {
        return Ok(None);
    }
    let mut random = Random::new(case.seed, 0x405);
    let alone: Vec<Vec<u64>> = (0..n.min(3)).map(|_| vec![random.below(n)]).collect();
    let reversed: Vec<u64> = (0..n).rev().collect();
    let cycle = |size: u64| -> Vec<u64> { (0..size).map(|i| i % n).collect() };
    let sizes = [n + 1, random.pick(&SIZES), random.pick(&SIZES)];
    let edges = ladder_edges(s)?;
    let batches = alone.into_iter().chain([reversed]);
    let batches = batches.chain(sizes.into_iter().chain(edges).map(cycle));
    for picks in batches {
        for limit in [None, Some(1024)] {
            if let Some(what) = batch(s, base, &picks, limit)? {
                return Ok(Some(what));
            }
        }
    }
    Ok(None)
}

/// Batches around which a plan without an override changes rows.
fn ladder_edges(s: &Subject<'_>) -> Result<Vec<u64>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let want = s.bench.want(case.extents.with(facts.rows, 256));
    let plan = crate::conformance::operator::plan(&case.op, &*s.free[0], &want)?;
    let changes = (2..=256).filter(|n| plan.kernel(*n) != plan.kernel(*n - 1));
    Ok(changes.flat_map(|n| [n - 1, n]).collect())
}

/// One batch of picked rows against the rows as first seen.
fn batch(
    s: &Subject<'_>,
    base: &Base,
    picks: &[u64],
    limit: Option<u64>,
) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let rows = facts.rows;
    let picked = |place: usize, bytes: &[u8]| {
        pick(&facts.operands[place].2, rows, &case.extents, bytes, picks)
    };
    let ranks = base.data.iter();
    let data = ranks.map(|rank| rank.iter().enumerate().map(|(i, b)| picked(i, b)).collect());
    let data: Vec<Vec<Vec<u8>>> = data.collect();
    let extents = case.extents.with(rows, picks.len() as u64);
    let limits = limit.map(|n| extents.with(rows, n.max(picks.len() as u64)));
    let seen = match s.bench.run(&extents, &data, &How { limits, ..How::default() }) {
        // A row forced beyond the batches it takes says so.
        Err(Error::Unsupported { .. }) => return Ok(None),
        seen => seen?,
    };
    let what = format!("{} rows picked of {}", picks.len(), case.extents.at(rows));
    let places = (0..facts.operands.len())
        .filter(|i| facts.operands[*i].1 != Dir::In && !facts.operands[*i].2.absent);
    for (out, place) in places.enumerate() {
        let (name, _, spec) = &facts.operands[place];
        for (rank, (now, first)) in seen.iter().zip(&base.seen).enumerate() {
            let same = if by_rows(spec, rows) {
                now.outs[out] == picked(place, &first.outs[out])
            } else {
                let before = data[rank][place].as_slice();
                shared(before, now, first, out, picks, case.extents.at(rows))
            };
            if !same {
                let why = format!("{name} of {what} differs from the rows in their own batch");
                return Ok(Some(why));
            }
        }
    }
    Ok(outputs::trespass(&seen))
}

/// An output that rows write into together: what changed must be what the whole batch made of it,
/// and a batch of all rows must change all of that.
fn shared(before: &[u8], now: &Seen, first: &Seen, out: usize, picks: &[u64], rows: u64) -> bool {
    let all = (0..rows).all(|r| picks.contains(&r));
    let bytes = before.iter().zip(&now.outs[out]).zip(&first.outs[out]);
    bytes.into_iter().all(|((before, now), first)| now == first || (now == before && !all))
}
