//! Property 8: NaN in one row stays in that row, and shows there.

use crate::conformance::{
    bench::How,
    expect::expected,
    outputs,
    pick::{by_rows, pick},
    subject::{Base, Subject},
};
use tandem_hal::{Dir, Domain, Elem, Enc, Extents, Operand, Result, View};
use tandem_reference::Random;

/// Put a NaN into one operand's row, and look at that row and at all others.
///
/// # Errors
/// What the card, planning or the device returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let rows = facts.rows;
    let mut random = Random::new(case.seed, 0x4A4);
    let holds_nan = |(_, dir, spec): &&(&str, Dir, Operand)| {
        let real = matches!(spec.domain, Domain::Real | Domain::Distribution);
        *dir != Dir::Out && real && by_rows(spec, rows) && nan_bytes(spec.enc).is_some()
    };
    let places: Vec<usize> = (0..facts.operands.len())
        .filter(|i| holds_nan(&&facts.operands[*i]) && !base.data[0][*i].is_empty())
        .collect();
    if places.is_empty() {
        return Ok(None);
    }
    let (place, row) = (random.pick(&places), random.below(case.extents.at(rows)));
    let mut data = base.data.clone();
    let (name, _, spec) = &facts.operands[place];
    poison(spec, &case.extents, row, case.extents.at(rows), &mut data[0][place], &mut random);
    let want = expected(&case.op, facts, &case.extents, &data)?;
    let seen = s.bench.run(&case.extents, &data, &How::default())?;
    let with = |what: String| format!("with NaN in row {row} of {name}: {what}");
    if let Some(what) = outputs::judged(&case.op, facts, &case.extents, s.accumulator, &seen, &want)
    {
        return Ok(Some(with(what)));
    }
    let others: Vec<u64> = (0..case.extents.at(rows)).filter(|r| *r != row).collect();
    for (place, (output, spec)) in outputs::outputs(facts).enumerate() {
        if !by_rows(spec, rows) {
            continue;
        }
        for (now, before) in seen.iter().zip(&base.seen) {
            let take = |outs: &[Vec<u8>]| pick(spec, rows, &case.extents, &outs[place], &others);
            if take(&now.outs) != take(&before.outs) {
                return Ok(Some(with(format!("another row of {output} changed"))));
            }
        }
    }
    Ok(None)
}

/// The bytes of a NaN element, or of a NaN scale.
fn nan_bytes(enc: Enc) -> Option<&'static [u8]> {
    match enc {
        Enc::Plain(Elem::Bf16) => Some(&[0xC0, 0x7F]),
        Enc::Plain(Elem::F32) => Some(&[0, 0, 0xC0, 0x7F]),
        Enc::Scaled { scale: Elem::Ue8m0, rows: 1, .. } => Some(&[0xFF]),
        Enc::Scaled { scale: Elem::E4m3Fn, rows: 1, .. } => Some(&[0x7F]),
        Enc::Scaled { scale: Elem::F32, rows: 1, .. } => Some(&[0, 0, 0xC0, 0x7F]),
        _ => None,
    }
}

/// Write a NaN somewhere into row `row` of `rows`.
fn poison(
    spec: &Operand,
    extents: &Extents,
    row: u64,
    rows: u64,
    bytes: &mut [u8],
    random: &mut Random,
) {
    let (codes, _) = View::size(spec.enc, &spec.shape(extents)).expect("a case fits 64 bits");
    let (codes, scales) = bytes.split_at_mut(codes as usize);
    let nan = nan_bytes(spec.enc).expect("chosen among those that have one");
    let part = if matches!(spec.enc, Enc::Plain(_)) { codes } else { scales };
    let step = part.len() / rows as usize;
    let slots = (step / nan.len()) as u64;
    let at = row as usize * step + random.below(slots) as usize * nan.len();
    part[at..at + nan.len()].copy_from_slice(nan);
}
