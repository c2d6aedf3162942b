//! Verdicts: whether what a device wrote is what the reference computed.
//!
//! | tolerance | rule for an element |
//! |---|---|
//! | [`Tolerance::Exact`] | the same bytes; of plain floats, NaN equals NaN whatever its payload |
//! | [`Tolerance::Bound`] | `\|got - exact\| <= gamma Σ\|terms\| + ½ ulp(got)` |
//! | [`Tolerance::Ulp`] | so many units apart, and a capped share of elements more than one apart |
//!
//! NaN and signed infinities must stand at the same places under each. Where an output has scales or
//! is a cache and the tolerance is not exact, its *values* are compared: each may lie one step of its
//! code apart, since an input of the cast may have rounded the other way, and few may differ at all.

mod bias;
mod float;
mod quantised;

pub use bias::Bias;

use crate::Tolerance;
use float::Float;
use tandem_hal::{Elem, Enc, Shape};

/// What the reference computed for one output.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Codes, then scales.
    pub bytes: Vec<u8>,
    /// `Σ|terms|` per element of a plain output.
    pub magnitude: Vec<f64>,
    /// Values before rounding per element of a plain output; NaN where the card gave none.
    pub exact: Vec<f64>,
}

/// The first element that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Where it is, outermost axis first; past the codes, the number of a scale byte alone.
    pub coordinate: Vec<u64>,
    /// Its code in hexadecimal, and its value.
    pub got: String,
    /// The reference's.
    pub want: String,
    /// By what rule it is wrong.
    pub why: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { coordinate, got, want, why } = self;
        write!(f, "at {coordinate:?}: got {got}, want {want}: {why}")
    }
}

/// Judge one dense output.
///
/// # Errors
/// The first bad element.
pub fn judge(
    enc: Enc,
    shape: &[u64],
    tolerance: Tolerance,
    got: &[u8],
    want: &Expected,
) -> Result<(), Difference> {
    if got == want.bytes {
        return Ok(());
    }
    match (Float::of(enc), tolerance) {
        (Some(float), _) => floats(float, shape, tolerance, got, want),
        (None, Tolerance::Exact) => same_bytes(enc, shape, got, &want.bytes, "bytes must be equal"),
        (None, _) if matches!(enc, Enc::Plain(_)) => {
            same_bytes(enc, shape, got, &want.bytes, "only real numbers have tolerances")
        }
        (None, _) => quantised::judge(enc, shape, got, &want.bytes),
    }
}

/// The same bytes, as two runs of one row owe.
///
/// # Errors
/// The first byte that differs, by the element it belongs to.
pub fn same_bytes(
    enc: Enc,
    shape: &[u64],
    got: &[u8],
    want: &[u8],
    why: &str,
) -> Result<(), Difference> {
    let Some(at) = got.iter().zip(want).position(|(a, b)| a != b) else {
        return Ok(());
    };
    let codes = tandem_hal::View::size(enc, shape).map_or(0, |(c, _)| c as usize);
    let width = if at < codes { (enc.unit_bits() as usize / 8).max(1) } else { 1 };
    let start = if at < codes { at / width * width } else { at };
    let element = if at < codes { at as u64 * 8 / enc.unit_bits() } else { (at - codes) as u64 };
    let coordinate = if at < codes { coordinate(shape, element) } else { vec![element] };
    // A whole cache entry is no help; its first bytes from the bad one on are.
    let (start, width) = if width > 8 { (at, 8.min(got.len() - at)) } else { (start, width) };
    let show = |b: &[u8]| spell(enc, &b[start..start + width]);
    Err(Difference { coordinate, got: show(got), want: show(want), why: why.into() })
}

/// The code of an element as a number, and its value where it is a float.
fn spell(enc: Enc, bytes: &[u8]) -> String {
    let hex: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
    match (Float::of(enc), enc) {
        (Some(float), _) => format!("0x{hex} ({:e})", float.value(bytes, 0)),
        (None, Enc::Plain(Elem::I32)) if bytes.len() == 4 => {
            let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
            format!("0x{hex} ({})", i32::from_le_bytes(word))
        }
        _ => format!("0x{hex}"),
    }
}

/// Indices of element number `element`, outermost first.
fn coordinate(shape: &[u64], element: u64) -> Vec<u64> {
    let mut rest = element;
    let mut indices: Vec<u64> = Shape::of(shape)
        .dims()
        .iter()
        .rev()
        .map(|&n| {
            let index = rest % n.max(1);
            rest /= n.max(1);
            index
        })
        .collect();
    indices.reverse();
    indices
}

fn floats(
    float: Float,
    shape: &[u64],
    tolerance: Tolerance,
    got: &[u8],
    want: &Expected,
) -> Result<(), Difference> {
    let count = want.bytes.len() / float.bytes();
    let (mut apart, mut first) = (0usize, None);
    for i in 0..count {
        let (a, b) = (float.value(got, i), float.value(&want.bytes, i));
        let fail = |why: String| {
            let show = |all: &[u8]| spell(float.enc(), &all[i * float.bytes()..][..float.bytes()]);
            let coordinate = coordinate(shape, i as u64);
            Difference { coordinate, got: show(got), want: show(&want.bytes), why }
        };
        if a.is_nan() != b.is_nan() {
            return Err(fail("NaN at one place only".into()));
        }
        if a.is_nan() || float.bits(got, i) == float.bits(&want.bytes, i) {
            continue;
        }
        if a.is_infinite() || b.is_infinite() {
            return Err(fail("an infinity at one place only".into()));
        }
        match tolerance {
            Tolerance::Exact => return Err(fail("must be equal".into())),
            Tolerance::Bound { gamma } => within(float, gamma, a, b, i, want).map_err(fail)?,
            Tolerance::Ulp { ulps, share } => {
                let distance = float.distance(got, &want.bytes, i);
                if distance > u64::from(ulps) {
                    return Err(fail(format!("{distance} ulps apart, {ulps} are allowed")));
                }
                if distance > 1 {
                    apart += 1;
                    let why = format!("more than {share} of the elements are over one ulp apart");
                    first.get_or_insert_with(|| fail(why));
                    if apart as f64 > (share * count as f64).ceil() {
                        return Err(first.expect("set just above"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The bound of one element.
fn within(
    float: Float,
    gamma: f64,
    got: f64,
    want: f64,
    i: usize,
    expected: &Expected,
) -> Result<(), String> {
    let magnitude = expected.magnitude.get(i).copied().unwrap_or(0.0);
    let exact = expected.exact.get(i).copied().filter(|x| x.is_finite());
    // A card that gave the rounded value only leaves its own half unit open.
    let (centre, open) = exact.map_or((want, 0.5 * float.ulp(want)), |x| (x, 0.0));
    let bound = gamma * magnitude + 0.5 * float.ulp(got) + open;
    let error = (got - centre).abs();
    // Not `>`: a magnitude that is NaN bounds nothing.
    if error <= bound {
        return Ok(());
    }
    Err(format!("off by {error:e} from {centre:e}, the bound is {bound:e}"))
}

#[cfg(test)]
mod tests;
