//! Matrix products.

use super::layout::{Layout, layout, place, result_place, scale_bytes, scale_lane};
use crate::Target;
use crate::decode::{Operand, Parts, Value};
use crate::fault::FaultKind;
use crate::machine::{Kind, LANES, Lanes, Source, Step, Wave};
use crate::number::{Minifloat, cdna3_sum, e8m0};
use crate::schedule::MatrixRule;

/// A decoded matrix product: rows of A times columns of B, plus C.
pub(crate) struct Matrix {
    /// Rows of A and columns of B.
    side: usize,
    /// Products in each sum.
    depth: usize,
    a: Side,
    b: Side,
    destination: u16,
    addend: Addend,
    /// Whether each block of 32 has its scale.
    is_scaled: bool,
    /// Clocks of the matrix unit.
    cycles: u64,
}

/// An operand: its registers, its elements, and its scales.
struct Side {
    first: u16,
    format: Format,
    layout: Layout,
    scale: Option<Scale>,
}

/// A byte of a register for each row and block of 32.
struct Scale {
    source: Source,
    shift: u32,
}

enum Addend {
    Registers(u16),
    Constant(f32),
}

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    F32,
    F16,
    Bf16,
    Small(Minifloat),
}

impl Format {
    fn bits(self) -> u32 {
        match self {
            Self::F32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::Small(format) => format.bits(),
        }
    }

    fn decode(self, bits: u32) -> f64 {
        match self {
            Self::F32 => f32::from_bits(bits).into(),
            Self::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => f32::from_bits(bits << 16).into(),
            Self::Small(format) => format.decode(bits),
        }
    }

    /// The format of f8f6f4 operands that a number in the encoding names.
    fn numbered(number: i64) -> Result<Self, String> {
        Ok(Self::Small(match number {
            0 => Minifloat::fp8(false),
            1 => Minifloat::bf8(false),
            2 => Minifloat::E2M3,
            3 => Minifloat::E3M2,
            4 => Minifloat::E2M1,
            _ => return Err(format!("operand format {number}")),
        }))
    }
}

fn unknown() -> String {
    "the mnemonic is not modelled".to_owned()
}

pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<Matrix, String> {
    let name = parts.name.strip_prefix("v_mfma_").ok_or_else(unknown)?;
    let is_scaled = name.starts_with("scale_");
    let name = name.trim_start_matches("scale_").strip_prefix("f32_").ok_or_else(unknown)?;
    let (shape, types) = name.split_once('_').ok_or_else(unknown)?;
    let dims: Vec<usize> = shape.split('x').filter_map(|x| x.parse().ok()).collect();
    let &[side, other, depth] = dims.as_slice() else { return Err(unknown()) };
    if side != other || !matches!(side, 16 | 32) || depth % (LANES / side) != 0 {
        return Err(unknown());
    }
    let formats = formats(parts, types)?;
    let mixed = types == "f8f6f4";
    let selects = scale_selects(parts, is_scaled)?;
    let [to, a, b, c, scales @ ..] = parts.operands.as_slice() else {
        return Err("an operand is missing".into());
    };
    if scales.len() != if is_scaled { 2 } else { 0 } {
        return Err("another number of operands".into());
    }
    let operand = |at: usize, operand: &Operand| -> Result<Side, String> {
        let format = formats[at];
        let bits = format.bits() as usize;
        let first = registers(operand, (side * depth / LANES * bits).div_ceil(32) as u16)?;
        let source = scales.get(at).map(|scale| Source::decode(scale, Kind::B32)).transpose()?;
        let scale = source.map(|source| Scale { source, shift: 8 * selects[at] });
        Ok(Side { first, format, layout: layout(mixed, bits), scale })
    };
    let results = (side * side / LANES) as u16;
    Ok(Matrix {
        side,
        depth,
        a: operand(0, a)?,
        b: operand(1, b)?,
        destination: registers(to, results)?,
        addend: match c.plain()? {
            Value::Integer(x) => Addend::Constant(f32::from_bits(x as u32)),
            Value::Float(x) => Addend::Constant(x as f32),
            _ => Addend::Registers(registers(c, results)?),
        },
        is_scaled,
        cycles: cycles(parts.target, side, depth, formats, mixed),
    })
}

/// Formats of A and B.
fn formats(parts: &mut Parts<'_>, types: &str) -> Result<[Format; 2], String> {
    let fnuz = parts.target.is_fnuz();
    let small = |name| match name {
        "fp8" => Ok(Format::Small(Minifloat::fp8(fnuz))),
        "bf8" => Ok(Format::Small(Minifloat::bf8(fnuz))),
        _ => Err(unknown()),
    };
    let mut numbered = |name| Format::numbered(parts.modifiers.number(name)?.unwrap_or(0));
    Ok(match types.trim_end_matches("_1k") {
        "f32" => [Format::F32; 2],
        "f16" => [Format::F16; 2],
        "bf16" => [Format::Bf16; 2],
        "f8f6f4" => [numbered("cbsz")?, numbered("blgp")?],
        pair => {
            let (a, b) = pair.split_once('_').ok_or_else(unknown)?;
            [small(a)?, small(b)?]
        }
    })
}

/// The byte of the scale register that each side takes.
fn scale_selects(parts: &mut Parts<'_>, is_scaled: bool) -> Result<[u32; 2], String> {
    if !is_scaled {
        return Ok([0; 2]);
    }
    let low = parts.modifiers.bits("op_sel", 0)?;
    let high = parts.modifiers.bits("op_sel_hi", 0)?;
    Ok(scale_bytes(low, high))
}

fn registers(operand: &Operand, least: u16) -> Result<u16, String> {
    match operand.plain()? {
        // Narrow formats leave the last registers unused.
        Value::Vector { first, count } if count >= least => Ok(first),
        _ => Err(format!("{least} vector registers were expected")),
    }
}

/// Clocks that the matrix unit is taken.
fn cycles(target: Target, side: usize, depth: usize, formats: [Format; 2], mixed: bool) -> u64 {
    let operations = 2 * side * side * depth;
    let bits = formats.map(Format::bits).into_iter().max().unwrap_or(0);
    let rate = match (target, bits) {
        (_, 32) => 256,
        (Target::Gfx942, 16) => 512,
        (Target::Gfx942, _) => 1024,
        // The shapes that are new in gfx950 run at twice the rate.
        (Target::Gfx950, 16) => {
            if depth * side >= 512 {
                1024
            } else {
                512
            }
        }
        (Target::Gfx950, 8) => {
            if mixed {
                2048
            } else {
                1024
            }
        }
        (Target::Gfx950, _) => 4096,
    };
    (operations / rate) as u64
}

impl Matrix {
    pub(crate) fn execute(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        let active = step.wave.active();
        if active != u64::MAX {
            return Err(FaultKind::InactiveLanes(active));
        }
        let rule = step.schedule.matrix;
        let wave = &mut *step.wave;
        let rows = self.a.elements(wave, self.side, self.depth)?;
        let columns = self.b.elements(wave, self.side, self.depth)?;
        let mut results = vec![[0u32; LANES]; self.side * self.side / LANES];
        for row in 0..self.side {
            for column in 0..self.side {
                let (register, lane) = result_place(self.side, row, column);
                let addend = match self.addend {
                    Addend::Constant(x) => x,
                    Addend::Registers(first) => {
                        f32::from_bits(wave.vector(first + register as u16)?[lane])
                    }
                };
                let row = &rows[row * self.depth..][..self.depth];
                let column = &columns[column * self.depth..][..self.depth];
                let sum = match rule {
                    MatrixRule::Cdna3 if !self.is_scaled => {
                        cdna3_sum(row, column, addend, self.a.format.bits())
                    }
                    _ => row.iter().zip(column).fold(f64::from(addend), |sum, (x, y)| sum + x * y)
                        as f32,
                };
                results[register][lane] = sum.to_bits();
            }
        }
        for (register, lanes) in (self.destination..).zip(&results) {
            wave.write_vector(register, lanes, u64::MAX)?;
        }
        step.tally.matrix_cycles += self.cycles;
        Ok(())
    }
}

impl Side {
    /// Elements, row by row, with their scales.
    fn elements(&self, wave: &Wave, side: usize, depth: usize) -> Result<Vec<f64>, FaultKind> {
        let bits = self.format.bits() as usize;
        let count = (side * depth / LANES * bits).div_ceil(32);
        let registers: Vec<&Lanes> =
            (self.first..).take(count).map(|at| wave.vector(at)).collect::<Result<_, _>>()?;
        let scales = match &self.scale {
            Some(scale) => {
                Some(scale.source.lanes(wave, 0)?.map(|word| e8m0((word >> scale.shift) as u8)))
            }
            None => None,
        };
        let mut elements = Vec::with_capacity(side * depth);
        for row in 0..side {
            for k in 0..depth {
                let (lane, bit) = place(self.layout, side, depth, bits, row, k);
                let (word, shift) = (bit / 32, bit % 32);
                let high = if shift + bits > 32 { registers[word + 1][lane] } else { 0 };
                let pair = u64::from(registers[word][lane]) | u64::from(high) << 32;
                let code = (pair >> shift & ((1u64 << bits) - 1)) as u32;
                let scale =
                    scales.as_ref().map_or(1.0, |scales| scales[scale_lane(side, row, k / 32)]);
                elements.push(self.format.decode(code) * scale);
            }
        }
        Ok(elements)
    }
}
