//! LDS: reads, writes, atomic operations, and reads that transpose.

use super::atomic::{self, Atomic};
use super::layout::column_source;
use crate::decode::{Operand, Parts, Value};
use crate::fault::FaultKind;
use crate::machine::{Action, Form, LANES, Lanes, Queues, Scope, Space, Step, Transfer};

/// A decoded access to LDS.
pub(crate) struct LdsAccess {
    address: u16,
    pieces: usize,
    offsets: [u32; 2],
    bytes: u32,
    kind: Access,
}

enum Access {
    Read {
        first: u16,
        form: Form,
    },
    /// First register of each piece, and bits by which narrow values are shifted down.
    Write {
        from: Vec<u16>,
        shift: u32,
    },
    Atomic {
        atomic: &'static Atomic,
        from: Vec<u16>,
        result: Option<u16>,
    },
}

fn registers(operand: &Operand, count: u32) -> Result<u16, String> {
    match operand.plain()? {
        Value::Vector { first, count: n } if u32::from(n) == count => Ok(first),
        _ => Err(format!("{count} vector registers were expected")),
    }
}

/// Size and form of what a read's name says behind `ds_read_`.
fn read_form(name: &str) -> Option<(u32, Form)> {
    let narrow = |bytes, signed| Some((bytes, Form::Narrow { signed }));
    let half = |bytes, signed, high| Some((bytes, Form::Half { signed, high }));
    match name {
        "u8" => narrow(1, false),
        "i8" => narrow(1, true),
        "u16" => narrow(2, false),
        "i16" => narrow(2, true),
        "u8_d16" => half(1, false, false),
        "u8_d16_hi" => half(1, false, true),
        "i8_d16" => half(1, true, false),
        "i8_d16_hi" => half(1, true, true),
        "u16_d16" => half(2, false, false),
        "u16_d16_hi" => half(2, false, true),
        "b32" => Some((4, Form::Words)),
        "b64" => Some((8, Form::Words)),
        "b96" => Some((12, Form::Words)),
        "b128" => Some((16, Form::Words)),
        "b64_tr_b4" => Some((8, Form::Columns { bits: 4 })),
        "b64_tr_b8" => Some((8, Form::Columns { bits: 8 })),
        "b64_tr_b16" => Some((8, Form::Columns { bits: 16 })),
        "b96_tr_b6" => Some((12, Form::Columns { bits: 6 })),
        _ => None,
    }
}

/// Size and shift of what a write's name says behind `ds_write_`.
fn write_form(name: &str) -> Option<(u32, u32)> {
    Some(match name {
        "b8" => (1, 0),
        "b8_d16_hi" => (1, 16),
        "b16" => (2, 0),
        "b16_d16_hi" => (2, 16),
        "b32" => (4, 0),
        "b64" => (8, 0),
        "b96" => (12, 0),
        "b128" => (16, 0),
        _ => return None,
    })
}

pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<LdsAccess, String> {
    let unknown = || "the mnemonic is not modelled".to_owned();
    let name = parts.name.strip_prefix("ds_").ok_or_else(unknown)?;
    let operands = parts.operands.as_slice();
    let at = |index: usize| operands.get(index).ok_or_else(|| "an operand is missing".to_owned());
    for (prefix, stride) in [("read2st64_", 64), ("read2_", 1), ("write2st64_", 64), ("write2_", 1)]
    {
        let Some(form) = name.strip_prefix(prefix) else { continue };
        let bytes = if form == "b64" { 8 } else { 4 };
        let mut offset = |name| {
            Ok::<_, String>(parts.modifiers.number(name)?.unwrap_or(0) as u32 * bytes * stride)
        };
        let offsets = [offset("offset0")?, offset("offset1")?];
        let (address, kind) = if prefix.starts_with("read") {
            let first = registers(at(0)?, bytes / 2)?;
            (registers(at(1)?, 1)?, Access::Read { first, form: Form::Words })
        } else {
            let from = vec![registers(at(1)?, bytes / 4)?, registers(at(2)?, bytes / 4)?];
            (registers(at(0)?, 1)?, Access::Write { from, shift: 0 })
        };
        return Ok(LdsAccess { address, pieces: 2, offsets, bytes, kind });
    }
    let offsets = [parts.modifiers.number("offset")?.unwrap_or(0) as u32, 0];
    let (address, bytes, kind) = if let Some(form) = name.strip_prefix("read_") {
        let (bytes, form) = read_form(form).ok_or_else(unknown)?;
        let first = registers(at(0)?, bytes.div_ceil(4))?;
        (registers(at(1)?, 1)?, bytes, Access::Read { first, form })
    } else if let Some(form) = name.strip_prefix("write_") {
        let (bytes, shift) = write_form(form).ok_or_else(unknown)?;
        let from = vec![registers(at(1)?, bytes.div_ceil(4))?];
        (registers(at(0)?, 1)?, bytes, Access::Write { from, shift })
    } else {
        let (atomic, returns) = atomic::of_lds(name).ok_or_else(unknown)?;
        let words = atomic.bytes / 4;
        let result = if returns { Some(registers(at(0)?, words)?) } else { None };
        let behind = usize::from(returns);
        let mut from = vec![registers(at(behind + 1)?, words)?];
        if atomic.operands == 2 {
            // LDS takes what is compared first, memory what is stored.
            from.insert(0, registers(at(behind + 2)?, words)?);
        }
        (registers(at(behind)?, 1)?, atomic.bytes, Access::Atomic { atomic, from, result })
    };
    Ok(LdsAccess { address, pieces: 1, offsets, bytes, kind })
}

impl LdsAccess {
    pub(crate) fn execute(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        let addresses = step.wave.vector(self.address)?.map(u64::from);
        let words = |from: &[u16], count: u32, shift: u32| -> Result<Vec<Lanes>, FaultKind> {
            let each = from.iter().flat_map(|first| *first..first + count as u16);
            each.map(|at| Ok(step.wave.vector(at)?.map(|word| word >> shift))).collect()
        };
        let action = match &self.kind {
            Access::Read { first, form } => Action::Load { first: *first, form: *form },
            Access::Write { from, shift } => {
                Action::Store { words: words(from, self.bytes.div_ceil(4), *shift)? }
            }
            Access::Atomic { atomic, from, result } => {
                Action::Atomic { atomic, words: words(from, self.bytes / 4, 0)?, result: *result }
            }
        };
        let transfer = Transfer {
            space: Space::Lds,
            scope: Scope::Workgroup,
            mask: step.wave.active(),
            zeros: 0,
            addresses,
            pieces: self.pieces,
            offsets: self.offsets,
            bytes: self.bytes,
            action,
        };
        step.count_passes(&transfer);
        step.issue(transfer, Queues::Lds)
    }
}

/// What a transposing read gives: columns of elements of `bits` bits, `total` bits a lane.
pub(crate) fn transposed(rows: &[Lanes; 8], bits: u32, total: u32) -> [Lanes; 8] {
    let count = total / bits;
    let read = |lane: usize, element: u32| {
        let (word, shift) = ((element * bits / 32) as usize, element * bits % 32);
        let pair = u64::from(rows[word][lane]) | u64::from(rows[word + 1][lane]) << 32;
        pair >> shift & ((1 << bits) - 1)
    };
    let mut columns = [[0; LANES]; 8];
    for row in 0..count {
        let (word, shift) = ((row * bits / 32) as usize, row * bits % 32);
        let column: [u64; LANES] = std::array::from_fn(|lane| {
            let (from, element) = column_source(lane, row as usize, count as usize);
            read(from, element as u32) << shift
        });
        let words = columns[word..].iter_mut().zip([0, 32]);
        for (lanes, from) in words {
            for (to, value) in lanes.iter_mut().zip(column) {
                *to |= (value >> from) as u32;
            }
        }
    }
    columns
}
