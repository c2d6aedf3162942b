//! Property 6, the large lane: offsets past 2^31 elements and 4 GiB.

use crate::conformance::{
    bench::How,
    case::Data,
    outputs,
    stage::Arrangement,
    subject::{Base, Subject},
};
use tandem_hal::{Dim, Dir, Domain, Enc, IndexBound, Operand, Result, Sym};

/// Where operands start: behind every 32-bit byte offset.
const BASE: u64 = (1 << 32) + (1 << 20);

/// The case with all operands behind 4 GiB, and, where an operand is a pool that indices point into,
/// with so many entries in front of it that its own offsets pass 4 GiB and 2^31 elements.
///
/// # Errors
/// What planning or the device returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let far = Arrangement { base: BASE, ..Arrangement::default() };
    let how = How { arrangement: far, ..How::default() };
    let seen = s.bench.run(&case.extents, &base.data, &how)?;
    let why = "behind 4 GiB the result differs";
    if let Some(what) = outputs::same(facts, &case.extents, &seen, &base.seen, why) {
        return Ok(Some(what));
    }
    if let Some(what) = outputs::trespass(&seen) {
        return Ok(Some(what));
    }
    let Some((sym, rows)) = pool(s) else { return Ok(None) };
    let extents = case.extents.with(sym, case.extents.at(sym) + rows);
    let data = shifted(s, base, sym, rows);
    let arrangement = Arrangement { shift: Some((sym, rows)), ..Arrangement::default() };
    let how = How { arrangement, limits: Some(extents), ..How::default() };
    let seen = s.bench.run(&case.extents, &data, &how)?;
    // Outputs that are addresses themselves move with the pool.
    let mut want = base.seen.clone();
    for rank in &mut want {
        for ((_, spec), bytes) in outputs::outputs(facts).zip(&mut rank.outs) {
            if let Some(step) = step_of(spec, sym) {
                move_indices(bytes, step * rows);
            }
        }
    }
    let why = format!("{rows} {} further on the result differs", sym.name());
    let differs = outputs::same(facts, &case.extents, &seen, &want, &why);
    Ok(differs.or_else(|| outputs::trespass(&seen)))
}

/// The first axis of an operand that indices point into, and how many rows pass 4 GiB there and
/// 2^31 elements.
fn pool(s: &Subject<'_>) -> Option<(Sym, u64)> {
    let facts = s.bench.facts;
    let pointed = |sym: Sym| {
        facts.operands.iter().any(|(_, _, spec)| !spec.absent && step_of(spec, sym).is_some())
    };
    facts.operands.iter().find_map(|(_, _, spec)| {
        let Some(Dim::Of(sym)) = spec.dims.first().copied() else { return None };
        let plain = matches!(spec.enc, Enc::Plain(_) | Enc::Record(_));
        let others = facts.operands.iter().filter(|(_, _, o)| o.dims.contains(&Dim::Of(sym)));
        let pool = !spec.absent && plain && sym != facts.rows && spec.dims.len() > 1;
        if !pool || !pointed(sym) || others.count() != 1 {
            return None;
        }
        let per: u64 = spec.dims[1..].iter().map(|d| d.at(&s.bench.case.extents)).product();
        let (elements, bytes) = match spec.enc {
            Enc::Record(record) => (u64::from(record.width), record.bytes()),
            other => (1, other.unit_bits() / 8),
        };
        let rows =
            ((1u64 << 32) / (bytes * per).max(1)).max((1u64 << 31) / (elements * per).max(1));
        // Addresses are 31-bit numbers.
        ((rows + 2) * per < 1 << 31).then_some((sym, rows + 2))
    })
}

/// Index units for one row of `sym`, if the operand points there.
fn step_of(spec: &Operand, sym: Sym) -> Option<u64> {
    match spec.domain {
        Domain::Index { below: IndexBound::Rows(of, per), .. } if of == sym => Some(per),
        _ => None,
    }
}

fn shifted(s: &Subject<'_>, base: &Base, sym: Sym, rows: u64) -> Data {
    let mut data = base.data.clone();
    for rank in &mut data {
        for (bytes, (_, dir, spec)) in rank.iter_mut().zip(&s.bench.facts.operands) {
            if let (true, Some(step)) = (*dir != Dir::Out && !spec.absent, step_of(spec, sym)) {
                move_indices(bytes, step * rows);
            }
        }
    }
    data
}

/// Add to every index but -1.
fn move_indices(bytes: &mut [u8], by: u64) {
    for word in bytes.as_chunks_mut::<4>().0 {
        let index = i32::from_le_bytes(*word);
        if index >= 0 {
            *word = (index + by as i32).to_le_bytes();
        }
    }
}
