//! Launches before they run: whether they suit the kernel, and what waves begin with.

use super::lds::Lds;
use super::memory::{Memory, Module};
use super::region::Access;
use super::wave::{EXEC, LANES, Wave};
use super::workgroup::Workgroup;
use crate::LaunchError;
use crate::object::{Argument, Kernel, UserRegisters};

/// A launch of a kernel.
#[derive(Clone)]
pub struct Dispatch<'a> {
    /// The code object that has the kernel.
    pub module: &'a Module,
    /// The kernel's name.
    pub kernel: &'a str,
    /// Workgroups in each direction.
    pub grid: [u32; 3],
    /// Work items of a workgroup in each direction.
    pub block: [u32; 3],
    /// The arguments, one behind the other as the kernel declares them. What a compiler adds to them is filled in.
    pub arguments: &'a [u8],
    /// LDS beside that which the kernel declares, in bytes.
    pub dynamic_lds_bytes: u32,
}

impl<'a> Dispatch<'a> {
    /// Whether the launch suits the kernel. Launches are checked in any case; this tells before they run.
    ///
    /// # Errors
    ///
    /// [`LaunchError::NoKernel`] and [`LaunchError::Unfit`].
    pub fn check(&self) -> Result<(), LaunchError> {
        self.fit().map(|_| ())
    }

    /// The kernel, and the LDS of a workgroup in bytes.
    fn fit(&self) -> Result<(&'a Kernel, u32), LaunchError> {
        let (object, name) = (self.module.object(), self.kernel);
        let kernel = object.kernel(name).ok_or_else(|| LaunchError::NoKernel(name.to_owned()))?;
        let unfit = |reason: String| Err(LaunchError::Unfit { kernel: name.to_owned(), reason });
        let items: u64 = self.block.iter().map(|n| u64::from(*n)).product();
        let most = kernel.notes.max_workgroup_size.min(1024);
        if items == 0 || items > u64::from(most) || self.block.iter().any(|n| *n > 1024) {
            return unfit(format!("blocks of {:?} work items, of at most {most}", self.block));
        }
        let lds_bytes = kernel.descriptor.lds_bytes.saturating_add(self.dynamic_lds_bytes);
        let (target, room) = (object.target(), object.target().lds_bytes());
        if lds_bytes > room {
            return unfit(format!("{lds_bytes} bytes of LDS, where {target} has {room}"));
        }
        let (given, taken) = (self.arguments.len() as u64, kernel.notes.explicit_bytes());
        if given < taken {
            return unfit(format!("{given} bytes of arguments, where it takes {taken}"));
        }
        Ok((kernel, lds_bytes))
    }
}

/// A launch that is found good, with its arguments in memory.
pub(super) struct Launch<'a> {
    pub(super) dispatch: &'a Dispatch<'a>,
    kernel: &'a Kernel,
    lds_bytes: u32,
    /// Addresses of the arguments and of the dispatch packet.
    regions: [u64; 2],
}

impl<'a> Launch<'a> {
    /// Puts the arguments into `memory`, which is the launch's own.
    pub(super) fn new(
        memory: &mut Memory,
        dispatch: &'a Dispatch<'a>,
    ) -> Result<Self, LaunchError> {
        let (kernel, lds_bytes) = dispatch.fit()?;
        let arguments = arguments(kernel, dispatch);
        let packet = packet(kernel, dispatch, lds_bytes);
        let regions = [("the kernel's arguments", arguments), ("the dispatch packet", packet)]
            .map(|(name, bytes)| memory.allocate(name, &bytes, Access::ReadOnly));
        Ok(Self { dispatch, kernel, lds_bytes, regions })
    }

    pub(super) fn workgroups(&self) -> u64 {
        self.dispatch.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// Workgroup `number` of the grid at its begin.
    pub(super) fn workgroup(
        &self,
        launch: usize,
        number: u64,
        memory: &Memory,
        seed: u64,
    ) -> Workgroup {
        let [x, y, _] = self.dispatch.grid.map(u64::from);
        let at = [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32];
        let poison = 0x7ff8_0000 | (seed as u32).wrapping_mul(0x9e5) & 0xffff;
        let items: u32 = self.dispatch.block.iter().product();
        let waves =
            (0..items.div_ceil(LANES as u32)).map(|id| self.wave(id, items, at, memory, poison));
        Workgroup {
            at,
            number,
            launch,
            waves: waves.collect(),
            lds: Lds::new(self.lds_bytes, poison),
        }
    }

    fn wave(&self, id: u32, items: u32, at: [u32; 3], memory: &Memory, poison: u32) -> Wave {
        let descriptor = &self.kernel.descriptor;
        let registers = self.dispatch.module.object().vector_registers();
        let mut wave =
            Wave::new(id, self.kernel.entry, registers, descriptor.private_bytes as usize, poison);
        let first = id * LANES as u32;
        let lanes = (items - first).min(LANES as u32);
        let active = u64::MAX >> (LANES as u32 - lanes);
        wave.scalars[usize::from(EXEC)] = active as u32;
        wave.scalars[usize::from(EXEC) + 1] = (active >> 32) as u32;
        let [arguments, packet] = self.regions;
        let mut next = 0;
        let mut put = |words: &[u32]| {
            wave.scalars[next..next + words.len()].copy_from_slice(words);
            next += words.len();
        };
        let pair = |address: u64| [address as u32, (address >> 32) as u32];
        for (register, words) in descriptor.user_registers() {
            match register {
                UserRegisters::Kernarg => put(&pair(arguments)),
                UserRegisters::DispatchPacket => put(&pair(packet)),
                UserRegisters::PrivateBytes => put(&[descriptor.private_bytes]),
                // Nothing of the others is modelled; what reads them computes with the poison.
                _ => put(&[poison; 4][..words.into()]),
            }
        }
        let (count, from) = descriptor.preload;
        for word in from..from + count {
            let mut bytes = poison.to_le_bytes();
            // Words behind the arguments hold what is there.
            let _is_there = memory.read_into(arguments + 4 * u64::from(word), &mut bytes);
            put(&[u32::from_le_bytes(bytes)]);
        }
        for (id, _) in at.iter().zip(descriptor.workgroup_ids()).filter(|(_, enabled)| *enabled) {
            put(&[*id]);
        }
        let [x, y, _] = self.dispatch.block;
        if let Ok(register) = wave.vector_mut(0) {
            for (lane, to) in (first..).zip(register) {
                // Lanes beyond the block have what comes out; they are not active.
                let place = [lane % x, lane / x % y, lane / x / y].map(|at| at & 0x3ff);
                *to = place[0] | place[1] << 10 | place[2] << 20;
            }
        }
        wave
    }
}

/// The argument segment: the caller's arguments and what the compiler adds.
fn arguments(kernel: &Kernel, dispatch: &Dispatch<'_>) -> Vec<u8> {
    let mut bytes = vec![0; kernel.descriptor.kernarg_bytes as usize];
    let given = (kernel.notes.explicit_bytes() as usize).min(bytes.len());
    bytes[..given].copy_from_slice(&dispatch.arguments[..given]);
    for argument in kernel.notes.arguments.iter().filter(|argument| argument.is_hidden()) {
        let value = hidden(argument, dispatch).to_le_bytes();
        let place = argument.offset as usize..(argument.offset + argument.size) as usize;
        if let (Some(to), Some(value)) = (bytes.get_mut(place), value.get(..argument.size as usize))
        {
            to.copy_from_slice(value);
        }
    }
    bytes
}

/// What the runtime puts into an argument of its own.
fn hidden(argument: &Argument, dispatch: &Dispatch<'_>) -> u64 {
    let kind = argument.kind.as_str();
    let axis = match kind.chars().last() {
        Some('x') => 0,
        Some('y') => 1,
        _ => 2,
    };
    let axes = |values: [u32; 3]| u64::from(values[axis]);
    match kind {
        "hidden_grid_dims" => {
            let used = (0..3).rev().find(|axis| dispatch.grid[*axis] * dispatch.block[*axis] > 1);
            used.unwrap_or(0) as u64 + 1
        }
        "hidden_dynamic_lds_size" => dispatch.dynamic_lds_bytes.into(),
        "hidden_shared_base" => super::SHARED_BASE >> 32,
        "hidden_private_base" => super::PRIVATE_BASE >> 32,
        _ if kind.starts_with("hidden_block_count_") => axes(dispatch.grid),
        _ if kind.starts_with("hidden_group_size_") => axes(dispatch.block),
        // Grids are whole blocks, and begin at 0; queues, heaps and host calls there are none.
        _ => 0,
    }
}

/// The packet that a queue would have held.
fn packet(kernel: &Kernel, dispatch: &Dispatch<'_>, lds_bytes: u32) -> Vec<u8> {
    let mut packet = vec![0; 64];
    let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
    for axis in 0..3 {
        put(4 + 2 * axis, &(dispatch.block[axis] as u16).to_le_bytes());
        put(12 + 4 * axis, &dispatch.grid[axis].saturating_mul(dispatch.block[axis]).to_le_bytes());
    }
    put(24, &kernel.descriptor.private_bytes.to_le_bytes());
    put(28, &lds_bytes.to_le_bytes());
    packet
}
