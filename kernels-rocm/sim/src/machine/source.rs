//! Operands that are read, resolved as far as can be before the run.

use super::memory::{PRIVATE_BASE, SHARED_BASE};
use super::wave::{LANES, Lanes, VCC, Wave};
use crate::decode::{Operand, Value};
use crate::fault::FaultKind;

/// What the bits of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// 64 bits with a sign.
    I64,
    F16,
    F32,
    F64,
    /// A bit for each lane, in a scalar pair.
    Mask,
}

impl Kind {
    /// Registers that it takes.
    pub(crate) fn words(self) -> u16 {
        match self {
            Self::B64 | Self::I64 | Self::F64 | Self::Mask => 2,
            _ => 1,
        }
    }

    /// The sign bit, which `-` and `| |` change; none where they have no meaning.
    pub(crate) fn sign(self) -> Option<u64> {
        match self {
            Self::F16 => Some(1 << 15),
            Self::F32 => Some(1 << 31),
            Self::F64 => Some(1 << 63),
            _ => None,
        }
    }

    /// The bits that a number in an instruction stands for.
    fn constant(self, value: Value) -> Result<Option<u64>, String> {
        Ok(Some(match (value, self) {
            (Value::Integer(x), Self::B64 | Self::I64 | Self::F64 | Self::Mask) => x as u64,
            (Value::Integer(x), _) => u64::from(x as u32),
            (Value::Float(x), Self::B64 | Self::I64 | Self::F64) => x.to_bits(),
            (Value::Float(x), Self::F16 | Self::B16) => half::f16::from_f64(x).to_bits().into(),
            (Value::Float(x), Self::B32 | Self::F32) => u64::from((x as f32).to_bits()),
            (Value::Float(_), _) => {
                return Err("a floating-point number for a mask".into());
            }
            (Value::Literal(x), Self::F64) => u64::from(x) << 32,
            // Without a sign a literal's upper half is zero.
            (Value::Literal(x), Self::I64) => i64::from(x as i32) as u64,
            (Value::Literal(x), _) => x.into(),
            (Value::SharedBase, _) => SHARED_BASE,
            (Value::PrivateBase, _) => PRIVATE_BASE,
            _ => return Ok(None),
        }))
    }
}

/// An operand to read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) whence: Whence,
    /// Bits that are kept, then bits that are flipped: absolute value and sign.
    pub(crate) keep: u64,
    pub(crate) flip: u64,
    /// The part of the word that is meant (SDWA).
    pub(crate) part: Part,
    /// The lane that each lane reads (DPP).
    pub(crate) swizzle: Option<Box<Swizzle>>,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whence {
    Vector(u16),
    Scalar(u8),
    Constant(u64),
    Status(Status),
}

/// Conditions that can be read as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Condition,
    VccZero,
    ExecZero,
}

/// A part of a word, as a shift and a number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) shift: u8,
    pub(crate) bits: u8,
    pub(crate) sign_extend: bool,
}

impl Part {
    pub(crate) const WORD: Self = Self { shift: 0, bits: 32, sign_extend: false };

    /// The part that SDWA's selectors name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let (shift, bits) = match name {
            "DWORD" => (0, 32),
            "WORD_0" => (0, 16),
            "WORD_1" => (16, 16),
            "BYTE_0" => (0, 8),
            "BYTE_1" => (8, 8),
            "BYTE_2" => (16, 8),
            "BYTE_3" => (24, 8),
            _ => return Err(format!("part {name}")),
        };
        Ok(Self { shift, bits, sign_extend: false })
    }

    /// Bits of the word that it has, shifted down.
    pub(crate) fn mask(self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    fn of(self, word: u32) -> u32 {
        let up = 32 - self.bits - self.shift;
        let top = word << up;
        if self.sign_extend {
            (top.cast_signed() >> (32 - self.bits)) as u32
        } else {
            top >> (32 - self.bits)
        }
    }
}

/// The lane that each lane reads, and lanes for which there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swizzle {
    pub(crate) from: [u8; LANES],
    pub(crate) valid: u64,
}

impl Source {
    /// An operand that is a register or a constant and nothing more.
    pub(crate) fn plain(whence: Whence) -> Self {
        Self { whence, keep: u64::MAX, flip: 0, part: Part::WORD, swizzle: None }
    }

    /// The operand as a value of a kind.
    pub(crate) fn decode(operand: &Operand, kind: Kind) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("an operand of {what} where {kind:?} was expected"));
        let whence = match operand.value {
            Value::Vector { .. } if kind == Kind::Mask => return wrong("vector registers"),
            Value::Vector { count, .. } if count != kind.words() => return wrong("another width"),
            Value::Vector { first, .. } => Whence::Vector(first),
            Value::Scalar { count, .. } if u16::from(count) != kind.words() => {
                return wrong("another width");
            }
            Value::Scalar { first, .. } => Whence::Scalar(first),
            Value::Condition => Whence::Status(Status::Condition),
            Value::VccZero => Whence::Status(Status::VccZero),
            Value::ExecZero => Whence::Status(Status::ExecZero),
            other => match kind.constant(other)? {
                Some(bits) => Whence::Constant(bits),
                None => return wrong("no value"),
            },
        };
        let mut source = Self::plain(whence);
        if operand.negate || operand.absolute {
            let sign =
                kind.sign().ok_or("a sign on an operand that is no floating-point number")?;
            source.keep = if operand.absolute { !sign } else { u64::MAX };
            source.flip = if operand.negate { sign } else { 0 };
        }
        source.part.sign_extend = operand.sign_extend;
        Ok(source)
    }

    /// Word `word` of the operand in every lane, its part, from the lane that is meant, without signs.
    pub(crate) fn lanes(&self, wave: &Wave, word: u16) -> Result<Lanes, FaultKind> {
        let mut lanes = match self.whence {
            Whence::Vector(first) => *wave.vector(first + word)?,
            _ => [self.uniform_word(wave, word)?; LANES],
        };
        if let Some(swizzle) = &self.swizzle {
            let active = wave.active();
            let read = lanes;
            for (lane, to) in lanes.iter_mut().enumerate() {
                let from = usize::from(swizzle.from[lane]);
                let is_valid = swizzle.valid >> lane & active >> from & 1 != 0;
                *to = if is_valid { read[from] } else { 0 };
            }
        }
        if self.part.bits < 32 {
            lanes = lanes.map(|word| self.part.of(word));
        }
        Ok(lanes)
    }

    /// Word `word` of the operand where that is a register as it is, which most are.
    pub(crate) fn register<'a>(
        &self,
        wave: &'a Wave,
        word: u16,
    ) -> Result<Option<&'a Lanes>, FaultKind> {
        match self.whence {
            Whence::Vector(first) if self.swizzle.is_none() && self.part.bits == 32 => {
                wave.vector(first + word).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A word of an operand that is the same in every lane; of a vector register, that of lane 0.
    pub(crate) fn uniform_word(&self, wave: &Wave, word: u16) -> Result<u32, FaultKind> {
        Ok(match self.whence {
            Whence::Vector(first) => wave.vector(first + word)?[0],
            Whence::Scalar(first) => wave.scalar(first + word as u8)?,
            Whence::Constant(bits) => (bits >> (32 * word)) as u32,
            Whence::Status(_) if word > 0 => 0,
            Whence::Status(Status::Condition) => wave.condition.into(),
            Whence::Status(Status::VccZero) => (wave.scalar_pair(VCC)? == 0).into(),
            Whence::Status(Status::ExecZero) => (wave.active() == 0).into(),
        })
    }

    /// The operand as 64 bits that are the same in every lane.
    pub(crate) fn uniform_pair(&self, wave: &Wave) -> Result<u64, FaultKind> {
        Ok(u64::from(self.uniform_word(wave, 0)?) | u64::from(self.uniform_word(wave, 1)?) << 32)
    }
}
