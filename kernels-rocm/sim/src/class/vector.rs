//! Vector arithmetic: the frame that the tables' rows run in, with what encodings add to them (SDWA's parts of
//! words, DPP's movements between lanes, signs, scales and clamps).

use std::collections::HashMap;
use std::sync::LazyLock;

use super::row::{Extra, Row};
use super::{
    bits, carry, compare, convert, division, eight_bit, float32, float64, integer32, integer64,
    narrow,
};
use crate::Target;
use crate::decode::{Modifiers, Parts, Value};
use crate::fault::FaultKind;
use crate::machine::{EXEC, Kind, LANES, Lanes, Part, Source, Swizzle, VCC, Wave, Whence};

/// A decoded vector instruction.
pub(crate) struct Vector {
    row: &'static Row,
    pub(crate) sources: Vec<Source>,
    pub(crate) destination: Destination,
    /// The pair that a mask of lanes is written to.
    mask: u8,
    /// Lanes that DPP lets be written, whatever they read.
    open: u64,
    /// Whether lanes without a source are written nevertheless, from 0.
    bound_zero: bool,
}

/// Where the result goes, and what becomes of it before.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    register: u16,
    /// The part that is written (SDWA), and what becomes of the rest.
    part: Part,
    rest: Rest,
    pub(crate) is_modified: bool,
    pub(crate) scale: f64,
    pub(crate) clamp: bool,
}

/// The rest of a register of which a part is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Zero,
    Sign,
    Preserve,
}

type Rows = HashMap<&'static str, Row>;

static GFX942: LazyLock<Rows> = LazyLock::new(|| rows(Target::Gfx942));
static GFX950: LazyLock<Rows> = LazyLock::new(|| rows(Target::Gfx950));

fn rows(target: Target) -> Rows {
    let tables = [
        bits::rows(),
        carry::rows(),
        compare::rows(),
        convert::rows(),
        division::rows(),
        eight_bit::rows(target),
        float32::rows(),
        float64::rows(),
        integer32::rows(),
        integer64::rows(),
        narrow::rows(),
    ];
    tables.into_iter().flatten().map(|row| (row.name, row)).collect()
}

pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<Vector, String> {
    let rows = match parts.target {
        Target::Gfx942 => &GFX942,
        Target::Gfx950 => &GFX950,
    };
    let row = rows.get(parts.name).ok_or("the mnemonic is not modelled")?;
    let mut operands = parts.operands.iter();
    let mut next = || operands.next().ok_or_else(|| "an operand is missing".to_owned());
    let mut register = 0;
    if let Some(kind) = row.result {
        let operand = next()?;
        let Value::Vector { first, count } = operand.plain()? else {
            return Err("a vector register was expected".into());
        };
        if count != kind.words() {
            return Err("a result of another width".into());
        }
        register = first;
    }
    let mut mask = 0;
    if row.mask {
        let Value::Scalar { first, count: 2 } = next()?.plain()? else {
            return Err("a pair of scalar registers was expected".into());
        };
        mask = first;
    }
    let printed = row.sources.len() - row.extra.operands();
    let mut sources = Vec::new();
    for kind in &row.sources[..printed] {
        sources.push(Source::decode(next()?, *kind)?);
    }
    unprinted(row.extra, register, &mut parts.modifiers, &mut sources)?;
    if operands.next().is_some() {
        return Err("an operand too many".into());
    }
    let mut vector = Vector {
        row,
        sources,
        destination: destination(row, register, &mut parts.modifiers)?,
        mask,
        open: u64::MAX,
        bound_zero: true,
    };
    match parts.encoding {
        "sdwa" => vector.take_parts(&mut parts.modifiers)?,
        "dpp" => vector.take_movement(&mut parts.modifiers)?,
        _ if vector.sources.iter().any(|source| source.part.sign_extend) => {
            return Err("sext() outside SDWA".into());
        }
        _ => {}
    }
    Ok(vector)
}

/// Operands that are not printed.
fn unprinted(
    extra: Extra,
    register: u16,
    modifiers: &mut Modifiers<'_>,
    sources: &mut Vec<Source>,
) -> Result<(), String> {
    let old = Source::plain(Whence::Vector(register));
    let constant = |bits: u64| Source::plain(Whence::Constant(bits));
    match extra {
        Extra::Nothing | Extra::WritesExec => {}
        Extra::ReadsVcc => sources.push(Source::plain(Whence::Scalar(VCC))),
        Extra::Table => sources.push(constant(modifiers.number("bitop3")?.unwrap_or(0) as u64)),
        Extra::Selects => sources.push(constant(modifiers.bits("op_sel", 0)?.into())),
        Extra::Accumulates => sources.push(old),
        Extra::IntoHalf => sources.extend([old, constant(modifiers.bits("op_sel", 0)?.into())]),
    }
    Ok(())
}

fn destination(
    row: &Row,
    register: u16,
    modifiers: &mut Modifiers<'_>,
) -> Result<Destination, String> {
    let is_float = matches!(row.result, Some(Kind::F16 | Kind::F32 | Kind::F64));
    let (mut scale, mut clamp) = (1.0, false);
    if is_float {
        clamp = modifiers.flag("clamp")?;
        scale = match (modifiers.number("mul")?, modifiers.number("div")?) {
            (None, None) => 1.0,
            (Some(2), None) => 2.0,
            (Some(4), None) => 4.0,
            (None, Some(2)) => 0.5,
            other => return Err(format!("output scale {other:?}")),
        };
    }
    let is_modified = clamp || scale != 1.0;
    Ok(Destination { register, part: Part::WORD, rest: Rest::Zero, is_modified, scale, clamp })
}

impl Vector {
    /// Takes SDWA's modifiers.
    fn take_parts(&mut self, modifiers: &mut Modifiers<'_>) -> Result<(), String> {
        for (name, source) in ["src0_sel", "src1_sel"].into_iter().zip(&mut self.sources) {
            let Some(part) = modifiers.word(name)? else { continue };
            source.part = Part { sign_extend: source.part.sign_extend, ..Part::named(part)? };
        }
        if let Some(part) = modifiers.word("dst_sel")? {
            self.destination.part = Part::named(part)?;
        }
        if let Some(rest) = modifiers.word("dst_unused")? {
            self.destination.rest = match rest {
                "UNUSED_PAD" => Rest::Zero,
                "UNUSED_SEXT" => Rest::Sign,
                "UNUSED_PRESERVE" => Rest::Preserve,
                _ => return Err(format!("dst_unused:{rest}")),
            };
        }
        let is_wide =
            self.row.sources.iter().any(|kind| matches!(kind, Kind::B64 | Kind::I64 | Kind::F64));
        if is_wide { Err("SDWA of 64-bit operands".into()) } else { Ok(()) }
    }

    /// Takes DPP's modifiers.
    fn take_movement(&mut self, modifiers: &mut Modifiers<'_>) -> Result<(), String> {
        let rows = modifiers.number("row_mask")?.unwrap_or(0xf);
        let banks = modifiers.number("bank_mask")?.unwrap_or(0xf);
        let lanes =
            (0..LANES).filter(|lane| rows >> (lane / 16) & banks >> (lane % 16 / 4) & 1 != 0);
        self.open = lanes.fold(0, |mask, lane| mask | 1 << lane);
        self.bound_zero = modifiers.word("bound_ctrl")?.is_some();
        self.sources[0].swizzle = Some(Box::new(movement(modifiers)?));
        Ok(())
    }

    pub(crate) fn execute(&self, wave: &mut Wave) -> Result<(), FaultKind> {
        (self.row.run)(wave, self)
    }

    /// Lanes that are written.
    fn written(&self, wave: &Wave) -> u64 {
        let mut mask = wave.active() & self.open;
        if let (false, Some(swizzle)) =
            (self.bound_zero, self.sources.first().and_then(|s| s.swizzle.as_ref()))
        {
            let active = wave.active();
            let readable = (0..LANES)
                .filter(|lane| active >> swizzle.from[*lane] & swizzle.valid >> lane & 1 != 0);
            mask &= readable.fold(0, |mask, lane| mask | 1u64 << lane);
        }
        mask
    }

    /// Writes the result register.
    pub(crate) fn write(
        &self,
        wave: &mut Wave,
        low: &Lanes,
        high: Option<&Lanes>,
    ) -> Result<(), FaultKind> {
        let mask = self.written(wave);
        let to = &self.destination;
        if let Some(high) = high {
            wave.write_vector(to.register + 1, high, mask)?;
        }
        if to.part.bits == 32 {
            return wave.write_vector(to.register, low, mask);
        }
        let place = to.part.mask() << to.part.shift;
        let mut lanes = *wave.vector(to.register)?;
        for (lane, value) in lanes.iter_mut().zip(low) {
            let part = value << to.part.shift & place;
            let is_negative = value >> (to.part.bits - 1) & 1 != 0;
            *lane = match to.rest {
                Rest::Zero => part,
                Rest::Preserve => *lane & !place | part,
                // The sign goes above the part; below it is nothing.
                Rest::Sign if is_negative => part | !(place | ((place & place.wrapping_neg()) - 1)),
                Rest::Sign => part,
            };
        }
        wave.write_vector(to.register, &lanes, mask)
    }

    /// Writes the mask of lanes; lanes that are not active have 0.
    pub(crate) fn write_mask(&self, wave: &mut Wave, mask: u64) -> Result<(), FaultKind> {
        let mask = mask & self.written(wave);
        wave.write_scalar_pair(self.mask, mask)?;
        if self.row.extra == Extra::WritesExec {
            wave.write_scalar_pair(EXEC, mask)?;
        }
        Ok(())
    }
}

/// The movement that DPP's control names. Rows have 16 lanes.
fn movement(modifiers: &mut Modifiers<'_>) -> Result<Swizzle, String> {
    if let Some(quad) = modifiers.list("quad_perm")? {
        let quad: [u8; 4] = quad.try_into().map_err(|_| "quad_perm of other than four lanes")?;
        return Ok(swizzle(|lane| Some((lane & !3) + usize::from(quad[lane & 3] & 3))));
    }
    for name in ["row_shl", "row_shr", "row_ror", "row_bcast", "row_newbcast"] {
        let Some(by) = modifiers.number(name)? else { continue };
        let by = usize::try_from(by).map_err(|_| "a negative distance")?;
        return Ok(swizzle(|lane| {
            let (row, at) = (lane & !15, lane & 15);
            match name {
                "row_shl" => (at + by < 16).then_some(lane + by),
                "row_shr" => (at >= by).then(|| lane - by),
                "row_ror" => Some(row + (at + 16 - by % 16) % 16),
                "row_newbcast" => Some(row + by % 16),
                // The last lane of each row, or of the first half, to the row or half behind it.
                _ if by == 15 => (lane >= 16).then(|| row - 1),
                _ => (lane >= 32).then_some(31),
            }
        }));
    }
    for name in ["wave_shl", "wave_shr", "wave_rol", "wave_ror"] {
        if modifiers.number(name)? == Some(1) {
            return Ok(swizzle(|lane| match name {
                "wave_shl" => (lane < 63).then_some(lane + 1),
                "wave_shr" => lane.checked_sub(1),
                "wave_rol" => Some((lane + 1) % LANES),
                _ => Some((lane + 63) % LANES),
            }));
        }
    }
    if modifiers.flag("row_mirror")? {
        return Ok(swizzle(|lane| Some(lane ^ 15)));
    }
    if modifiers.flag("row_half_mirror")? {
        return Ok(swizzle(|lane| Some(lane ^ 7)));
    }
    Err("a movement between lanes that is not modelled".into())
}

fn swizzle(from: impl Fn(usize) -> Option<usize>) -> Swizzle {
    let valid =
        (0..LANES).filter(|lane| from(*lane).is_some()).fold(0, |mask, lane| mask | 1 << lane);
    Swizzle { from: std::array::from_fn(|lane| from(lane).unwrap_or(lane) as u8), valid }
}
