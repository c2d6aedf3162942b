//! What collectives share: every rank's elements, in the windows of all.

use crate::{Peers, ViewArgument, ops::prelude::*};
use tandem_hal::{DeviceInfo, Error};

/// The image with its kernels.
pub(super) const IMAGE: &str = "comm/exchange";

/// Threads that look out for other ranks.
const WATCHERS: u32 = 32;
/// Threads of a block that moves elements.
const THREADS: u32 = 256;

/// The emulator runs one rank after the other.
pub(super) fn on_boards<D>(_: &D, info: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if info.board == "emulated" { Err("ranks must run at once") } else { Ok(()) }
}

/// One collective launch of one rank.
#[derive(Clone, Copy)]
pub struct Exchange {
    /// The operator.
    pub op: &'static str,
    /// The kernel that makes the output of what has arrived.
    pub collect: &'static str,
    /// Ranks that the descriptor says.
    pub ranks: u64,
    /// Columns of one rank.
    pub width: u64,
    /// This rank's rows.
    pub x: ViewArgument,
    /// Where the output goes.
    pub y: ViewArgument,
}

/// Elements that go at once.
#[derive(Clone, Copy)]
pub struct Part {
    first: u64,
    count: u64,
}

impl Exchange {
    pub(super) fn run(&self, on: &Launcher<'_>) -> Result<()> {
        let (peers, elements) = (on.peers(), on.at(Sym::Tokens) * self.width);
        let ranks = peers.map_or(1, Peers::ranks);
        if ranks != self.ranks {
            let why = format!("`ranks` is {}, the group has {ranks}", self.ranks);
            return Err(Error::BadDescriptor { op: self.op, why });
        }
        let Some(peers) = peers else {
            let arguments = [View(self.x), View(self.y), U64(self.width), U64(elements)];
            return on.items("comm_copy", elements, &arguments);
        };
        for part in parts(elements, peers.capacity) {
            self.push(peers, part, on)?;
            self.wait(peers, on)?;
            self.collect(peers, part, on)?;
        }
        Ok(())
    }

    /// Send elements to every rank. At least one block, which says that there are none.
    pub fn push(&self, peers: &Peers, part: Part, on: &Launcher<'_>) -> Result<()> {
        let blocks = part.count.div_ceil(u64::from(THREADS)).max(1);
        let words = peers.words(self.subject(on));
        let Part { first, count } = part;
        let arguments = [Words(&words), View(self.x), U64(self.width), U64(first), U64(count)];
        on.rows("comm_push", blocks, THREADS, &arguments)
    }

    /// Wait until every rank has sent as much.
    pub fn wait(&self, peers: &Peers, on: &Launcher<'_>) -> Result<()> {
        on.rows("comm_wait", 1, WATCHERS, &[Words(&peers.words(self.subject(on)))])
    }

    /// Make the output of elements that have arrived.
    pub fn collect(&self, peers: &Peers, part: Part, on: &Launcher<'_>) -> Result<()> {
        let (words, Part { first, count }) = (peers.words(self.subject(on)), part);
        let arguments = [Words(&words), View(self.y), U64(self.width), U64(first), U64(count)];
        on.items(self.collect, count, &arguments)
    }

    /// A digest of operator and shape, so that ranks which launch different ones notice.
    fn subject(&self, on: &Launcher<'_>) -> u32 {
        let sizes = [self.width, on.at(Sym::Tokens)].into_iter().flat_map(u64::to_le_bytes);
        let bytes = self.op.bytes().chain(sizes);
        bytes.fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// The exchanges of so many elements; one of nothing if there are none, since all ranks take part.
pub fn parts(elements: u64, capacity: u64) -> impl Iterator<Item = Part> {
    (0..elements.div_ceil(capacity).max(1)).map(move |i| {
        let first = i * capacity;
        Part { first, count: (elements - first).min(capacity) }
    })
}
