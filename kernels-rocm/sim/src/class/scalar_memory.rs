//! Loads of scalars, and clocks.

use super::scalar::ScalarSource;
use crate::decode::{Operand, Parts, Value};
use crate::fault::FaultKind;
use crate::machine::Step;

/// A load of scalars from memory or from a clock.
pub(crate) enum ScalarMemory {
    Load {
        first: u8,
        count: u8,
        base: Base,
        offset: i64,
        /// A further offset in a register.
        index: Option<ScalarSource>,
    },
    /// Steps so far, which pass for the time.
    Clock { first: u8 },
}

/// What a load's addresses count from.
pub(crate) enum Base {
    /// An address in a pair of registers.
    Address(ScalarSource),
    /// A buffer's descriptor in four registers.
    Buffer(u8),
}

pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<Option<ScalarMemory>, String> {
    if matches!(parts.name, "s_memtime" | "s_memrealtime") {
        let first = destination(parts.operands.first(), 2)?;
        return Ok(Some(ScalarMemory::Clock { first }));
    }
    let (rest, is_buffer) = match parts.name.strip_prefix("s_load_dword") {
        Some(rest) => (rest, false),
        None => match parts.name.strip_prefix("s_buffer_load_dword") {
            Some(rest) => (rest, true),
            None => return Ok(None),
        },
    };
    let count = match rest {
        "" => 1,
        "x2" => 2,
        "x4" => 4,
        "x8" => 8,
        "x16" => 16,
        _ => return Err("the mnemonic is not modelled".into()),
    };
    let [to, base, at] = parts.operands.as_slice() else {
        return Err("three operands were expected".into());
    };
    let first = destination(Some(to), count)?;
    let base = match (base.plain()?, is_buffer) {
        (Value::Scalar { first, count: 4 }, true) => Base::Buffer(first),
        (Value::Scalar { count: 2, .. }, false) => Base::Address(ScalarSource::decode(base, 2)?),
        _ => return Err("an address or descriptor of another width".into()),
    };
    let mut offset = parts.modifiers.number("offset")?.unwrap_or(0);
    let mut index = None;
    match at.plain()? {
        Value::Integer(x) => offset += x,
        Value::Literal(x) => offset += i64::from(x),
        Value::Scalar { .. } => index = Some(ScalarSource::decode(at, 1)?),
        _ => return Err("an offset of another kind".into()),
    }
    Ok(Some(ScalarMemory::Load { first, count, base, offset, index }))
}

fn destination(operand: Option<&Operand>, words: u8) -> Result<u8, String> {
    match operand.ok_or("an operand is missing")?.plain()? {
        Value::Scalar { first, count } if count == words => Ok(first),
        _ => Err("scalar registers were expected".into()),
    }
}

impl ScalarMemory {
    pub(crate) fn execute(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        match self {
            Self::Clock { first } => {
                let now = step.clock;
                step.wave.write_scalar_pair(*first, now)?;
                step.issue_clock(*first)
            }
            Self::Load { first, count, base, offset, index } => {
                let index = index.as_ref().map_or(Ok(0), |index| index.word(step.wave))?;
                let distance = (*offset).wrapping_add(index.into());
                let address = match base {
                    Base::Address(base) => base.pair(step.wave)?.wrapping_add_signed(distance) & !3,
                    Base::Buffer(at) => {
                        let low = step.wave.scalar_pair(*at)?;
                        let size = i64::from(step.wave.scalar(at + 2)?);
                        let end = distance + 4 * i64::from(*count);
                        if low >> 48 != 0 || distance < 0 || end > size {
                            let what = "a scalar buffer load past its end or of structures";
                            return Err(FaultKind::Unmodelled(what.into()));
                        }
                        low.wrapping_add_signed(distance) & !3
                    }
                };
                step.issue_scalars(address, *first, *count)
            }
        }
    }
}
