//! What a kernel can do wrong.

use std::fmt;

/// Something that a kernel did wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it did.
    pub kind: FaultKind,
    /// The kernel.
    pub kernel: String,
    /// Address of the instruction in the code object.
    pub pc: u64,
    /// The instruction as the disassembler prints it. For memory that lands late, the one that asked for it.
    pub instruction: String,
    /// The workgroup's place in the grid.
    pub workgroup: [u32; 3],
    /// The wave in the workgroup.
    pub wave: u32,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, kernel, pc, instruction, workgroup, wave } = self;
        let [x, y, z] = workgroup;
        write!(
            f,
            "{kernel}: {kind}, at pc {pc:#x} `{instruction}`, workgroup ({x}, {y}, {z}), wave {wave}"
        )
    }
}

impl std::error::Error for Fault {}

/// A register, as a fault names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Scalar.
    Scalar(u8),
    /// Vector; those from 256 on are accumulation registers.
    Vector(u16),
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Scalar(106) => f.write_str("vcc_lo"),
            Self::Scalar(107) => f.write_str("vcc_hi"),
            Self::Scalar(at) => write!(f, "s{at}"),
            Self::Vector(at) if at < 256 => write!(f, "v{at}"),
            Self::Vector(at) => write!(f, "a{}", at - 256),
        }
    }
}

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// A register was used while a load to it may still be on its way.
    #[error("{0} is used while a load to it may be in flight: an s_waitcnt is missing")]
    MissingWait(Register),
    /// An address outside every region.
    #[error("lane {lane} {} {bytes} bytes at {address:#x}, {place}", if *.write { "writes" } else { "reads" })]
    OutOfBounds {
        /// The lane.
        lane: u32,
        /// Whether it writes.
        write: bool,
        /// The address.
        address: u64,
        /// How many bytes.
        bytes: u32,
        /// Where that is, told by the nearest region.
        place: String,
    },
    /// A write to memory that may only be read.
    #[error("lane {lane} writes to {region}, which is read-only, at byte {offset}")]
    ReadOnly {
        /// The lane.
        lane: u32,
        /// The region.
        region: String,
        /// Where in it.
        offset: u64,
    },
    /// An LDS address behind the workgroup's LDS.
    #[error("lane {lane} uses byte {address} of LDS, and the workgroup has {size}")]
    LdsOutOfBounds {
        /// The lane.
        lane: u32,
        /// The address.
        address: u64,
        /// Size of the LDS, in bytes.
        size: u32,
    },
    /// A private address behind the lane's scratch memory.
    #[error("lane {lane} uses byte {address} of scratch memory, and a lane has {size}")]
    ScratchOutOfBounds {
        /// The lane.
        lane: u32,
        /// The address.
        address: u64,
        /// Size of a lane's scratch memory, in bytes.
        size: u32,
    },
    /// An LDS byte that nothing wrote was read.
    #[error("lane {lane} reads byte {address} of LDS, which nothing has written")]
    LdsUninitialised {
        /// The lane.
        lane: u32,
        /// The byte.
        address: u32,
    },
    /// An LDS byte was read while another wave's write to it may be on its way.
    #[error(
        "lane {lane} reads byte {address} of LDS while wave {writer}'s write to it may be in flight"
    )]
    LdsInFlight {
        /// The lane.
        lane: u32,
        /// The byte.
        address: u32,
        /// The wave that writes.
        writer: u32,
    },
    /// An LDS byte was read that another wave wrote since the last barrier.
    #[error(
        "lane {lane} reads byte {address} of LDS, which wave {writer} wrote since the last barrier"
    )]
    LdsReadAfterWrite {
        /// The lane.
        lane: u32,
        /// The byte.
        address: u32,
        /// The wave that wrote.
        writer: u32,
    },
    /// An LDS byte was written that another wave read since the last barrier.
    #[error(
        "lane {lane} writes byte {address} of LDS, which waves {readers:#x} read since the last barrier"
    )]
    LdsWriteAfterRead {
        /// The lane.
        lane: u32,
        /// The byte.
        address: u32,
        /// The waves that read, a bit each.
        readers: u32,
    },
    /// Two waves wrote an LDS byte since the last barrier, or one's write is still on its way.
    #[error(
        "lane {lane} writes byte {address} of LDS, which wave {writer} wrote since the last barrier"
    )]
    LdsWriteAfterWrite {
        /// The lane.
        lane: u32,
        /// The byte.
        address: u32,
        /// The wave that wrote first.
        writer: u32,
    },
    /// The program ended while loads into LDS were in flight.
    #[error("the program ends while a load to LDS is in flight")]
    EndInFlight,
    /// Execution left the kernel's code.
    #[error("execution goes on at {0:#x}, where there is no code")]
    NoCode(u64),
    /// A wave waits at a barrier that an ended wave can no longer reach, or all wait for ever.
    #[error("the launch made {0} steps without an end")]
    StepLimit(u64),
    /// An instruction that is right only with all lanes active.
    #[error("the instruction needs all lanes active, and those of {0:#x} are")]
    InactiveLanes(u64),
    /// A form that is known only when the instruction runs, and has no model.
    #[error("{0} is not modelled")]
    Unmodelled(String),
}
