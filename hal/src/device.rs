//! What a backend implements.

use crate::{
    Accumulator, Alloc, Checked, Class, Enc, Error, Extents, Layout, LedgerLine, Op, Rank, Result,
    Stream, View,
};
use std::{fs::File, sync::Arc};

/// Identifies an opened device within the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceId(pub u64);

choice! {
    /// The FP8 dialect that the matrix units read.
    pub enum Dialect {
        /// [`crate::Elem::E4m3Fn`], the checkpoint's own.
        Fn = "fn",
        /// [`crate::Elem::E4m3Fnuz`]: weights are requantised when loaded.
        Fnuz = "fnuz",
    }
}

/// What the hardware can do, as rows and planners need to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// FP8 dialect of the matrix units.
    pub dialect: Dialect,
    /// Whether there are FP4 matrix units.
    pub fp4_units: bool,
    /// Shared memory of one workgroup, bytes; 0 where there is none.
    pub shared_memory_bytes: u64,
    /// Lanes of a wave or warp; 1 on a host.
    pub lanes: u32,
}

/// Facts about an opened device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The device.
    pub id: DeviceId,
    /// Name for users and logs, such as `reference` or `cuda:0`.
    pub name: String,
    /// The board, the key of recorded proofs.
    pub board: String,
    /// Instruction set, the key of kernel rows.
    pub arch: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// What the hardware can do.
    pub capabilities: Capabilities,
    /// This device's place in its group.
    pub rank: u32,
    /// Devices opened together as one group.
    pub ranks: u32,
}

/// A promise about results. A stronger promise is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Numerics {
    /// Within the operator's bound; runs may differ.
    Free,
    /// The same launch gives the same bits.
    Deterministic,
    /// A row of data gives the same bits whatever else is in the launch.
    RowInvariant,
}

/// Where a reservation lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The device's own memory.
    Device,
    /// Device memory that every rank of the group may address (one-sided put, fused dispatch).
    Group,
    /// Host memory, pinned and visible to the device.
    Pinned,
    /// A read-only file mapping, visible to the device.
    Mapped,
}

impl Place {
    /// Whether it counts against the device's memory.
    pub const fn on_device(self) -> bool {
        matches!(self, Place::Device | Place::Group)
    }
}

/// One kernel row with its verdict for a descriptor.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The row.
    pub kernel: &'static str,
    /// How much work went into it.
    pub rank: Rank,
    /// What it promises.
    pub numerics: Numerics,
    /// Its bits: rows with equal bits are bitwise equal.
    pub bits: &'static str,
    /// What it adds products in.
    pub accumulator: Accumulator,
    /// What it needs, or why it is not taken.
    pub verdict: std::result::Result<Needs, String>,
}

/// What a launch needs besides its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Scratch bytes.
    pub workspace_bytes: u64,
}

/// What a caller wants of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// The weakest promise it accepts.
    pub numerics: Numerics,
    /// The largest extents it will launch with.
    pub limits: Extents,
}

/// A device of one backend. Operators are data ([`Op`]), so every wrapper (trace, timing, faults)
/// is one implementation of this trait.
///
/// Kernel overrides and the group are given when the device is opened ([`crate::Options`]).
/// After a device fault every call answers [`Error::DeviceLost`].
pub trait Device: Send + Sync + 'static {
    /// Facts.
    fn info(&self) -> &DeviceInfo;

    /// Reserve memory and enter it in the ledger. The content is unspecified.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Unsupported`] for a place the device does not have.
    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>>;

    /// Make `bytes` of `file` from `offset` visible to the device, read-only.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where files are read by position instead, which is the default.
    fn map(&self, _file: &File, _offset: u64, _bytes: u64, purpose: &str) -> Result<Arc<Alloc>> {
        let reason = format!("{} cannot map {purpose}; read it by position", self.info().name);
        Err(Error::Unsupported { op: "map".into(), reason })
    }

    /// A new queue.
    ///
    /// # Errors
    /// When the device is lost.
    fn stream(&self) -> Result<Box<dyn Stream>>;

    /// Every kernel row for this operator with its verdict, best first.
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate>;

    /// The ladder of rows chosen for this operator.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the reasons when no set of rows will do.
    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>>;

    /// Physical layout of a weight and its bytes: a function of class, encoding and shape alone,
    /// known before any byte is read. `shape` is that of one part for stacked weights.
    fn layout(&self, _class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        (Layout::Plain, View::reserved_bytes(enc, shape))
    }

    /// Rearrange a plain weight (or one part) into its private layout, on the device.
    ///
    /// # Errors
    /// When the layouts are not this device's.
    fn pack(&self, _from: &View, _to: &View, _on: &dyn Stream) -> Result<()> {
        Err(Error::ForeignObject { what: "layout" })
    }

    /// The inverse of [`Device::pack`].
    ///
    /// # Errors
    /// As [`Device::pack`].
    fn unpack(&self, _from: &View, _to: &View, _on: &dyn Stream) -> Result<()> {
        Err(Error::ForeignObject { what: "layout" })
    }

    /// Every reservation alive.
    fn ledger(&self) -> Vec<LedgerLine>;
}

/// The rows chosen for one descriptor.
pub trait Kernel: Send + Sync {
    /// The row that would run `tokens` rows of data.
    fn name(&self, tokens: u64) -> &'static str;
    /// The bits all its rows share.
    fn bits(&self) -> &str;
    /// Scratch for the largest launch planned.
    fn needs(&self) -> Needs;
    /// Run on checked operands. Allocates nothing.
    ///
    /// # Errors
    /// When the stream is another backend's or the device is lost.
    fn launch(&self, io: &Checked<'_>, on: &dyn Stream) -> Result<()>;
}
