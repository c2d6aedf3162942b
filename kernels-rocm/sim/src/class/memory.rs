//! Memory: global, flat, scratch and buffer instructions.

use super::atomic::{self, Atomic};
use crate::decode::{Operand, Parts, Value};
use crate::fault::FaultKind;
use crate::machine::{
    Action, Form, LANES, Lanes, M0, Queues, Scope, Source, Space, Step, Transfer, Whence,
};

/// A decoded access to memory.
pub(crate) enum MemoryAccess {
    /// What is newer in the caches goes to memory, for a scope.
    WriteBack(Scope),
    /// What memory may have newer leaves the caches, for a scope.
    Invalidate(Scope),
    Transfer(Access),
}

/// What is accessed, and how.
pub(crate) struct Access {
    address: Address,
    space: Space,
    scope: Scope,
    offset: i64,
    bytes: u32,
    kind: Kind,
}

enum Kind {
    Load { first: u16, form: Form },
    ToLds,
    Store { from: u16, shift: u32 },
    Atomic { atomic: &'static Atomic, from: u16, result: Option<u16> },
}

/// How addresses are made.
enum Address {
    /// 64 bits in each lane.
    Pair(u16),
    /// 64 bits that all lanes share, and 32 in each lane; either may be missing.
    Base { base: Option<Source>, index: Option<u16> },
    /// A buffer's descriptor, an offset in each lane, and one that all lanes share.
    Buffer { descriptor: u8, index: Option<u16>, shared: Source },
}

/// Size and form of what a load's name says.
fn load_form(name: &str) -> Option<(u32, Form)> {
    let narrow = |bytes, signed| Some((bytes, Form::Narrow { signed }));
    let half = |bytes, signed, high| Some((bytes, Form::Half { signed, high }));
    match name {
        "ubyte" => narrow(1, false),
        "sbyte" => narrow(1, true),
        "ushort" => narrow(2, false),
        "sshort" => narrow(2, true),
        "ubyte_d16" => half(1, false, false),
        "ubyte_d16_hi" => half(1, false, true),
        "sbyte_d16" => half(1, true, false),
        "sbyte_d16_hi" => half(1, true, true),
        "short_d16" => half(2, false, false),
        "short_d16_hi" => half(2, false, true),
        "dword" => Some((4, Form::Words)),
        "dwordx2" => Some((8, Form::Words)),
        "dwordx3" => Some((12, Form::Words)),
        "dwordx4" => Some((16, Form::Words)),
        _ => None,
    }
}

/// Size and shift of what a store's name says.
fn store_form(name: &str) -> Option<(u32, u32)> {
    Some(match name {
        "byte" => (1, 0),
        "byte_d16_hi" => (1, 16),
        "short" => (2, 0),
        "short_d16_hi" => (2, 16),
        "dword" => (4, 0),
        "dwordx2" => (8, 0),
        "dwordx3" => (12, 0),
        "dwordx4" => (16, 0),
        _ => return None,
    })
}

fn registers(operand: &Operand, count: u32) -> Result<u16, String> {
    match operand.plain()? {
        Value::Vector { first, count: n } if u32::from(n) == count => Ok(first),
        _ => Err(format!("{count} vector registers were expected")),
    }
}

fn unknown() -> String {
    "the mnemonic is not modelled".to_owned()
}

pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<MemoryAccess, String> {
    let (family, name) = parts.name.split_once('_').ok_or_else(unknown)?;
    // Policies of replacement change nothing.
    let (returns, wide) = (parts.modifiers.flag("sc0")?, parts.modifiers.flag("sc1")?);
    parts.modifiers.flag("nt")?;
    let scope = Scope::of(returns, wide);
    match parts.name {
        "buffer_wbl2" => return Ok(MemoryAccess::WriteBack(scope)),
        "buffer_inv" => return Ok(MemoryAccess::Invalidate(scope)),
        _ => {}
    }
    let mut operands = std::mem::take(&mut parts.operands).into_iter();
    let mut next = || operands.next().ok_or_else(|| "an operand is missing".to_owned());
    let to_lds = parts.modifiers.flag("lds")? || name.starts_with("load_lds_");
    let (bytes, mut kind) = operation(name, to_lds)?;
    let (words, data) = (bytes.div_ceil(4), kind.data_words(bytes));
    let is_buffer = family == "buffer";
    match &mut kind {
        Kind::Load { first, .. } => *first = registers(&next()?, words)?,
        Kind::Atomic { result, .. } if returns && !is_buffer => {
            *result = Some(registers(&next()?, words)?);
        }
        _ => {}
    }
    // A buffer's data come before the address, and what was there returns into them.
    if is_buffer && data > 0 {
        kind.take_data(registers(&next()?, data)?, returns);
    }
    let first = next()?;
    if !is_buffer && data > 0 {
        kind.take_data(registers(&next()?, data)?, false);
    }
    let (space, address) = match family {
        "flat" => (Space::Flat, Address::Pair(registers(&first, 2)?)),
        "global" => (Space::Global, global_address(&first, &next()?)?),
        "scratch" => (Space::Scratch, scratch_address(&first, &next()?)?),
        _ => {
            let (descriptor, shared) = (next()?, next()?);
            let indexed = parts.modifiers.flag("offen")?;
            (Space::Global, buffer_address(&first, &descriptor, &shared, indexed)?)
        }
    };
    if operands.next().is_some() {
        return Err("an operand too many".into());
    }
    let offset = parts.modifiers.number("offset")?.unwrap_or(0);
    Ok(MemoryAccess::Transfer(Access { address, space, scope, offset, bytes, kind }))
}

/// What a name says behind its family: the size, and what is done, with registers still to come.
fn operation(name: &str, to_lds: bool) -> Result<(u32, Kind), String> {
    if let Some(form) = name.strip_prefix("load_") {
        let (bytes, form) = load_form(form.trim_start_matches("lds_")).ok_or_else(unknown)?;
        return match (to_lds, form) {
            (true, Form::Half { .. }) => Err(unknown()),
            (true, _) => Ok((bytes, Kind::ToLds)),
            (false, form) => Ok((bytes, Kind::Load { first: 0, form })),
        };
    }
    if let Some(form) = name.strip_prefix("store_") {
        let (bytes, shift) = store_form(form).ok_or_else(unknown)?;
        return Ok((bytes, Kind::Store { from: 0, shift }));
    }
    let atomic = name.strip_prefix("atomic_").and_then(atomic::of_memory).ok_or_else(unknown)?;
    Ok((atomic.bytes, Kind::Atomic { atomic, from: 0, result: None }))
}

impl Kind {
    /// Registers whose values go to memory.
    fn data_words(&self, bytes: u32) -> u32 {
        match self {
            Self::Store { .. } => bytes.div_ceil(4),
            Self::Atomic { atomic, .. } => bytes / 4 * atomic.operands as u32,
            Self::Load { .. } | Self::ToLds => 0,
        }
    }

    /// Takes the first of those registers, into which what was there may return.
    fn take_data(&mut self, register: u16, returns: bool) {
        match self {
            Self::Store { from, .. } => *from = register,
            Self::Atomic { from, result, .. } => {
                *from = register;
                *result = if returns { Some(register) } else { *result };
            }
            Self::Load { .. } | Self::ToLds => {}
        }
    }
}

fn pair_of_scalars(operand: &Operand) -> Result<Option<Source>, String> {
    match operand.plain()? {
        Value::Off => Ok(None),
        Value::Scalar { first, count: 2 } => Ok(Some(Source::plain(Whence::Scalar(first)))),
        _ => Err("a pair of scalar registers was expected".into()),
    }
}

fn global_address(first: &Operand, base: &Operand) -> Result<Address, String> {
    Ok(match pair_of_scalars(base)? {
        None => Address::Pair(registers(first, 2)?),
        base => Address::Base { base, index: Some(registers(first, 1)?) },
    })
}

fn scratch_address(first: &Operand, base: &Operand) -> Result<Address, String> {
    let index = match first.plain()? {
        Value::Off => None,
        _ => Some(registers(first, 1)?),
    };
    let base = match base.plain()? {
        Value::Off => None,
        Value::Scalar { first, count: 1 } => Some(Source::plain(Whence::Scalar(first))),
        _ => return Err("a scalar register was expected".into()),
    };
    Ok(Address::Base { base, index })
}

fn buffer_address(
    first: &Operand,
    descriptor: &Operand,
    shared: &Operand,
    indexed: bool,
) -> Result<Address, String> {
    let Value::Scalar { first: descriptor, count: 4 } = descriptor.plain()? else {
        return Err("a buffer's descriptor was expected".into());
    };
    let index = match (first.plain()?, indexed) {
        (Value::Off, false) => None,
        (_, true) => Some(registers(first, 1)?),
        _ => return Err("an address where none was expected".into()),
    };
    let shared = Source::decode(shared, crate::machine::Kind::B32)?;
    if matches!(shared.whence, Whence::Vector(_)) {
        return Err("a vector register where a scalar was expected".into());
    }
    Ok(Address::Buffer { descriptor, index, shared })
}

impl MemoryAccess {
    /// Whether other workgroups or launches may wait for what it does, or it for what they do.
    pub(crate) fn communicates(&self) -> bool {
        match self {
            Self::WriteBack(scope) | Self::Invalidate(scope) => scope.leaves_die(),
            Self::Transfer(Access { kind: Kind::Atomic { .. }, space, .. }) => {
                *space != Space::Scratch
            }
            Self::Transfer(access) => access.scope.leaves_die(),
        }
    }

    pub(crate) fn execute(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        match self {
            Self::WriteBack(scope) => step.issue_write_back(scope.leaves_die()),
            Self::Invalidate(scope) => {
                if let Some(die) = step.die.as_deref_mut().filter(|_| scope.leaves_die()) {
                    die.invalidate();
                }
                Ok(())
            }
            Self::Transfer(access) => access.execute(step),
        }
    }
}

impl Access {
    fn execute(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        let active = step.wave.active();
        let (addresses, inside) = self.addresses(step)?;
        let words = |first: u16, count: u32, shift: u32| -> Result<Vec<Lanes>, FaultKind> {
            let each = first..first + count as u16;
            each.map(|at| Ok(step.wave.vector(at)?.map(|word| word >> shift))).collect()
        };
        let action = match &self.kind {
            Kind::Load { first, form } => Action::Load { first: *first, form: *form },
            Kind::Store { from, shift } => {
                Action::Store { words: words(*from, self.bytes.div_ceil(4), *shift)? }
            }
            Kind::Atomic { atomic, from, result } => {
                let count = self.bytes / 4 * atomic.operands as u32;
                Action::Atomic { atomic, words: words(*from, count, 0)?, result: *result }
            }
            // The instruction's own offset moves both addresses.
            Kind::ToLds => {
                Action::ToLds { base: step.wave.scalar(M0)?.wrapping_add(self.offset as u32) }
            }
        };
        let transfer = Transfer {
            space: self.space,
            scope: self.scope,
            mask: active & inside,
            zeros: active & !inside,
            addresses,
            pieces: 1,
            offsets: [0; 2],
            bytes: self.bytes,
            action,
        };
        let queues = if self.space == Space::Flat { Queues::Both } else { Queues::Memory };
        step.issue(transfer, queues)
    }

    /// The address of each lane, and lanes that a buffer's bounds let through.
    fn addresses(&self, step: &Step<'_>) -> Result<([u64; LANES], u64), FaultKind> {
        let wave = &*step.wave;
        let index = |at: &Option<u16>| at.map_or(Ok([0; LANES]), |at| wave.vector(at).copied());
        match &self.address {
            Address::Pair(at) => {
                let (low, high) = (wave.vector(*at)?, wave.vector(at + 1)?);
                let pair = |lane: usize| u64::from(low[lane]) | u64::from(high[lane]) << 32;
                Ok((
                    std::array::from_fn(|lane| pair(lane).wrapping_add_signed(self.offset)),
                    u64::MAX,
                ))
            }
            Address::Base { base, index: at } => {
                let base = match base {
                    None => 0,
                    Some(base) if self.space == Space::Scratch => {
                        base.uniform_word(wave, 0)?.into()
                    }
                    Some(base) => base.uniform_pair(wave)?,
                };
                let from = base.wrapping_add_signed(self.offset);
                Ok((index(at)?.map(|index| from.wrapping_add(index.into())), u64::MAX))
            }
            Address::Buffer { descriptor, index: at, shared } => {
                let low = wave.scalar_pair(*descriptor)?;
                let size = u64::from(wave.scalar(descriptor + 2)?);
                // Stride, swizzles and typed formats make structures of it.
                if low >> 48 & 0x3fff != 0 {
                    return Err(FaultKind::Unmodelled("a buffer of structures".into()));
                }
                let shared = u64::from(shared.uniform_word(wave, 0)?);
                let offsets = index(at)?.map(|x| u64::from(x) + self.offset as u64 + shared);
                self.within(&offsets, size, wave.active())
                    .map(|inside| (offsets.map(|x| (low & 0xffff_ffff_ffff) + x), inside))
            }
        }
    }

    /// Lanes whose bytes lie within a buffer.
    fn within(&self, offsets: &[u64; LANES], size: u64, active: u64) -> Result<u64, FaultKind> {
        let mut inside = 0;
        for lane in (0..LANES).filter(|lane| active >> lane & 1 != 0) {
            if offsets[lane] + u64::from(self.bytes) <= size {
                inside |= 1 << lane;
            } else if offsets[lane] < size {
                return Err(FaultKind::Unmodelled("a buffer access over the buffer's end".into()));
            }
        }
        Ok(inside)
    }
}
