//! Two values at once: halves of words, or pairs of words.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::element::{F16, within_one};
use crate::decode::{Parts, Value};
use crate::fault::FaultKind;
use crate::machine::{Kind, LANES, Lanes, Source, Wave, Whence};

/// A decoded packed instruction.
pub(crate) struct Packed {
    row: &'static Row,
    destination: u16,
    sources: Vec<Source>,
    /// For the low and the high result, a bit for each operand: whether its high half is read, and whether it is
    /// negated.
    select: [u8; 2],
    negate: [u8; 2],
    clamp: bool,
}

struct Row {
    name: &'static str,
    operands: usize,
    run: Run,
}

/// What is computed in each half.
enum Run {
    /// Of 16-bit integers.
    Short(fn(u16, u16, u16) -> u16),
    /// Of 16-bit floating-point numbers.
    Half(fn(F16, F16, F16) -> F16),
    /// Of 32-bit floating-point numbers.
    Single(fn(f32, f32, f32) -> f32),
    /// The low result of the first operand, the high one of the second.
    Move,
}

fn half(f: impl Fn(f64, f64, f64) -> f64, a: F16, b: F16, c: F16) -> F16 {
    F16::from_f64(f(a.to_f32().into(), b.to_f32().into(), c.to_f32().into()))
}

static ROWS: LazyLock<HashMap<&'static str, Row>> = LazyLock::new(|| {
    use super::float32::{larger, smaller};
    use Run::{Half, Move, Short, Single};
    let rows: [(&str, usize, Run); 25] = [
        ("v_pk_add_f32", 2, Single(|a, b, _| a + b)),
        ("v_pk_mul_f32", 2, Single(|a, b, _| a * b)),
        ("v_pk_fma_f32", 3, Single(f32::mul_add)),
        ("v_pk_mov_b32", 2, Move),
        ("v_pk_add_f16", 2, Half(|a, b, c| half(|a, b, _| a + b, a, b, c))),
        ("v_pk_mul_f16", 2, Half(|a, b, c| half(|a, b, _| a * b, a, b, c))),
        ("v_pk_fma_f16", 3, Half(|a, b, c| half(|a, b, c| a * b + c, a, b, c))),
        ("v_pk_max_f16", 2, Half(|a, b, _| F16::from_f32(larger(a.to_f32(), b.to_f32())))),
        ("v_pk_min_f16", 2, Half(|a, b, _| F16::from_f32(smaller(a.to_f32(), b.to_f32())))),
        ("v_pk_add_u16", 2, Short(|a, b, _| a.wrapping_add(b))),
        ("v_pk_add_i16", 2, Short(|a, b, _| a.wrapping_add(b))),
        ("v_pk_sub_u16", 2, Short(|a, b, _| a.wrapping_sub(b))),
        ("v_pk_sub_i16", 2, Short(|a, b, _| a.wrapping_sub(b))),
        ("v_pk_mul_lo_u16", 2, Short(|a, b, _| a.wrapping_mul(b))),
        ("v_pk_mad_u16", 3, Short(|a, b, c| a.wrapping_mul(b).wrapping_add(c))),
        ("v_pk_mad_i16", 3, Short(|a, b, c| a.wrapping_mul(b).wrapping_add(c))),
        ("v_pk_min_u16", 2, Short(|a, b, _| a.min(b))),
        ("v_pk_max_u16", 2, Short(|a, b, _| a.max(b))),
        ("v_pk_min_i16", 2, Short(|a, b, _| (a as i16).min(b as i16) as u16)),
        ("v_pk_max_i16", 2, Short(|a, b, _| (a as i16).max(b as i16) as u16)),
        ("v_pk_lshlrev_b16", 2, Short(|a, b, _| b << (a & 15))),
        ("v_pk_lshrrev_b16", 2, Short(|a, b, _| b >> (a & 15))),
        ("v_pk_ashrrev_i16", 2, Short(|a, b, _| (b as i16 >> (a & 15)) as u16)),
        ("v_pk_minimum3_f16", 3, Half(|a, b, c| half(|a, b, c| least(least(a, b), c), a, b, c))),
        (
            "v_pk_maximum3_f16",
            3,
            Half(|a, b, c| half(|a, b, c| -least(least(-a, -b), -c), a, b, c)),
        ),
    ];
    rows.into_iter().map(|(name, operands, run)| (name, Row { name, operands, run })).collect()
});

/// The smaller, NaN if either is.
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<Option<Packed>, String> {
    let Some(row) = ROWS.get(parts.name) else { return Ok(None) };
    let kind = if row.is_wide() { Kind::B64 } else { Kind::B32 };
    let [to, from @ ..] = parts.operands.as_slice() else {
        return Err("an operand is missing".into());
    };
    if from.len() != row.operands {
        return Err(format!("{} has {} operands", row.name, row.operands));
    }
    let destination = match to.plain()? {
        Value::Vector { first, count } if count == kind.words() => first,
        _ => return Err("vector registers were expected".into()),
    };
    let mut sources = Vec::new();
    for operand in from {
        let operand_kind = match (&row.run, operand.value) {
            // A number stands for each of the two words.
            (Run::Single(_), Value::Float(_)) => Kind::F32,
            (Run::Half(_), Value::Float(_)) => Kind::F16,
            (Run::Single(_) | Run::Move, Value::Integer(_) | Value::Literal(_)) => Kind::B32,
            _ => kind,
        };
        let mut source = Source::decode(operand, operand_kind)?;
        if let (Whence::Constant(bits), true) = (source.whence, row.is_wide()) {
            source.whence = Whence::Constant(bits & 0xffff_ffff | bits << 32);
        }
        sources.push(source);
    }
    let modifiers = &mut parts.modifiers;
    let high = (1 << row.operands) - 1;
    let select = [modifiers.bits("op_sel", 0)?, modifiers.bits("op_sel_hi", high)?];
    let (mut negate, mut clamp) = ([0, 0], false);
    if matches!(row.run, Run::Single(_) | Run::Half(_)) {
        negate = [modifiers.bits("neg_lo", 0)?, modifiers.bits("neg_hi", 0)?];
        clamp = modifiers.flag("clamp")?;
    }
    Ok(Some(Packed { row, destination, sources, select, negate, clamp }))
}

impl Row {
    /// Whether operands are pairs of words.
    fn is_wide(&self) -> bool {
        matches!(self.run, Run::Single(_) | Run::Move)
    }
}

impl Packed {
    pub(crate) fn execute(&self, wave: &mut Wave) -> Result<(), FaultKind> {
        let mask = wave.active();
        match self.row.run {
            Run::Single(f) => {
                let low = self.single(wave, f, 0)?;
                let high = self.single(wave, f, 1)?;
                wave.write_vector(self.destination, &low, mask)?;
                wave.write_vector(self.destination + 1, &high, mask)
            }
            Run::Move => {
                let low = self.sources[0].lanes(wave, self.word(0, 0))?;
                let high = self.sources[1].lanes(wave, self.word(0, 1))?;
                wave.write_vector(self.destination, &low, mask)?;
                wave.write_vector(self.destination + 1, &high, mask)
            }
            Run::Short(f) => self.halves(wave, f, mask),
            Run::Half(f) => {
                let clamp = self.clamp;
                let finish = move |x: F16| {
                    if clamp { F16::from_f64(within_one(x.to_f32().into())) } else { x }
                };
                self.halves(wave, move |a, b, c| finish(f(F16(a), F16(b), F16(c))).0, mask)
            }
        }
    }

    /// The word of a pair that result `half` reads of an operand.
    fn word(&self, half: usize, operand: usize) -> u16 {
        u16::from(self.select[half] >> operand & 1)
    }

    fn single(
        &self,
        wave: &Wave,
        f: fn(f32, f32, f32) -> f32,
        half: usize,
    ) -> Result<Lanes, FaultKind> {
        let mut operands = [[0u32; LANES]; 3];
        for (at, (lanes, source)) in operands.iter_mut().zip(&self.sources).enumerate() {
            let sign = u32::from(self.negate[half] >> at & 1) << 31;
            *lanes = source.lanes(wave, self.word(half, at))?.map(|word| word ^ sign);
        }
        let [a, b, c] = operands.map(|lanes| lanes.map(f32::from_bits));
        let mut result = [0; LANES];
        for lane in 0..LANES {
            let x = f(a[lane], b[lane], c[lane]);
            result[lane] = if self.clamp { within_one(x.into()) as f32 } else { x }.to_bits();
        }
        Ok(result)
    }

    fn halves(
        &self,
        wave: &mut Wave,
        f: impl Fn(u16, u16, u16) -> u16,
        mask: u64,
    ) -> Result<(), FaultKind> {
        let mut operands = [[0u32; LANES]; 3];
        for (lanes, source) in operands.iter_mut().zip(&self.sources) {
            *lanes = source.lanes(wave, 0)?;
        }
        let read = |half: usize, lane: usize, at: usize| {
            let sign = u16::from(self.negate[half] >> at & 1) << 15;
            (operands[at][lane] >> (16 * self.word(half, at))) as u16 ^ sign
        };
        let mut result = [0; LANES];
        for (lane, to) in result.iter_mut().enumerate() {
            let [low, high] =
                [0, 1].map(|half| f(read(half, lane, 0), read(half, lane, 1), read(half, lane, 2)));
            *to = u32::from(low) | u32::from(high) << 16;
        }
        wave.write_vector(self.destination, &result, mask)
    }
}
