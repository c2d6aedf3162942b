//! Memory that kernels see: regions with gaps between them, every access checked.

use std::cell::Cell;
use std::sync::Arc;

use crate::fault::FaultKind;
use crate::{CodeObject, LaunchError};

/// Where flat addresses begin to mean LDS, and scratch memory, for 4 GiB each.
pub(crate) const SHARED_BASE: u64 = 0x0002_0000_0000_0000;
pub(crate) const PRIVATE_BASE: u64 = 0x0001_0000_0000_0000;

/// Where regions begin, their alignment, and the least gap between two.
const FIRST: u64 = 0x7f00_0000_0000;
const ALIGNMENT: u64 = 1 << 16;
const GAP: u64 = 1 << 20;

/// What kernels may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read it.
    ReadOnly,
    /// Read and write it.
    ReadWrite,
}

struct Region {
    base: u64,
    bytes: Vec<u8>,
    access: Access,
    name: String,
}

impl Region {
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

/// All memory of a machine. Addresses in it are the same on each of its devices.
#[derive(Default)]
pub struct Memory {
    /// In the order of their addresses.
    regions: Vec<Region>,
    /// The region that was found last; the next is often the same.
    recent: Cell<usize>,
}

/// A code object in memory, ready to be launched any number of times.
#[derive(Clone)]
pub struct Module {
    pub(crate) object: Arc<CodeObject>,
    pub(crate) base: u64,
}

impl Module {
    /// The code object.
    #[must_use]
    pub fn object(&self) -> &CodeObject {
        &self.object
    }

    /// Address and size in bytes of a symbol, such as a device variable.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        self.object.symbol(name).map(|(offset, bytes)| (self.base + offset, bytes))
    }
}

impl Memory {
    /// Memory without regions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A new region that holds `bytes`; its address. An access that begins in it and ends one byte behind it is a
    /// fault. The name is for messages.
    pub fn allocate(&mut self, name: &str, bytes: Vec<u8>, access: Access) -> u64 {
        let end = self.regions.iter().map(Region::end).max().unwrap_or(FIRST).max(FIRST);
        let base = (end + GAP).next_multiple_of(ALIGNMENT);
        self.regions.push(Region { base, bytes, access, name: name.to_owned() });
        self.regions.sort_by_key(|region| region.base);
        base
    }

    /// A new region at an address of the caller's choice, such as that of the host's own memory.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Unfit`] if it overlaps another one or has a part where flat addresses mean LDS or scratch.
    pub fn allocate_at(
        &mut self,
        base: u64,
        name: &str,
        bytes: Vec<u8>,
        access: Access,
    ) -> Result<(), LaunchError> {
        let end = base.saturating_add(bytes.len() as u64);
        let is_taken = self.regions.iter().any(|r| r.base < end && base < r.end());
        if is_taken || end > PRIVATE_BASE {
            let reason = format!("{} bytes at {base:#x} are not free", bytes.len());
            return Err(LaunchError::Unfit { kernel: name.to_owned(), reason });
        }
        self.regions.push(Region { base, bytes, access, name: name.to_owned() });
        self.regions.sort_by_key(|region| region.base);
        Ok(())
    }

    /// Frees the region that begins at `base`; its bytes, or none if there is no such region.
    pub fn free(&mut self, base: u64) -> Option<Vec<u8>> {
        let at = self.regions.binary_search_by_key(&base, |region| region.base).ok()?;
        Some(self.regions.remove(at).bytes)
    }

    /// What the host reads: `bytes` bytes from `address`, or none if they do not lie in one region.
    #[must_use]
    pub fn read(&self, address: u64, bytes: u64) -> Option<&[u8]> {
        let region = &self.regions[self.region_of(address, bytes)?];
        let from = (address - region.base) as usize;
        Some(&region.bytes[from..from + bytes as usize])
    }

    /// What the host writes, whatever kernels may do: `bytes` bytes from `address`, or none if they do not lie in
    /// one region.
    pub fn read_mut(&mut self, address: u64, bytes: u64) -> Option<&mut [u8]> {
        let at = self.region_of(address, bytes)?;
        let region = &mut self.regions[at];
        let from = (address - region.base) as usize;
        Some(&mut region.bytes[from..from + bytes as usize])
    }

    /// Puts a code object into memory.
    pub fn load(&mut self, object: &Arc<CodeObject>) -> Module {
        let end = self.regions.iter().map(Region::end).max().unwrap_or(FIRST).max(FIRST);
        let base = (end + GAP).next_multiple_of(ALIGNMENT);
        for segment in object.segments() {
            let access = if segment.is_writable { Access::ReadWrite } else { Access::ReadOnly };
            let (base, bytes) = (base + segment.address, segment.bytes.clone());
            self.regions.push(Region { base, bytes, access, name: "the code object".into() });
        }
        self.regions.sort_by_key(|region| region.base);
        for &(place, offset) in object.relocations() {
            if let Some(word) = self.read_mut(base + place, 8) {
                word.copy_from_slice(&(base + offset).to_le_bytes());
            }
        }
        Module { object: Arc::clone(object), base }
    }

    fn region_of(&self, address: u64, bytes: u64) -> Option<usize> {
        let holds = |at: usize| {
            let region = self.regions.get(at)?;
            let inside = address.checked_sub(region.base)?;
            let room = (region.bytes.len() as u64).checked_sub(inside)?;
            (bytes <= room).then_some(at)
        };
        if let Some(at) = holds(self.recent.get()) {
            return Some(at);
        }
        let at = self.regions.partition_point(|region| region.base <= address).checked_sub(1)?;
        self.recent.set(at);
        holds(at)
    }

    /// The region that holds an address: where it begins, and its bytes.
    pub(crate) fn region_at(&self, address: u64) -> Option<(u64, &[u8])> {
        let region = &self.regions[self.region_of(address, 0)?];
        Some((region.base, &region.bytes))
    }

    /// Checks what a lane is about to do.
    pub(crate) fn check(
        &self,
        lane: u32,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Result<(), FaultKind> {
        let Some(at) = self.region_of(address, bytes.into()) else {
            return Err(self.out_of_bounds(lane, address, bytes, write));
        };
        let region = &self.regions[at];
        if write && region.access == Access::ReadOnly {
            let (region, offset) = (region.name.clone(), address - region.base);
            return Err(FaultKind::ReadOnly { lane, region, offset });
        }
        Ok(())
    }

    /// What a lane reads; as many bytes as `to` has.
    pub(crate) fn get(&self, lane: u32, address: u64, to: &mut [u8]) -> Result<(), FaultKind> {
        let Some(bytes) = self.read(address, to.len() as u64) else {
            return Err(self.out_of_bounds(lane, address, to.len() as u32, false));
        };
        to.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes for a lane.
    pub(crate) fn put(&mut self, lane: u32, address: u64, bytes: &[u8]) -> Result<(), FaultKind> {
        self.check(lane, address, bytes.len() as u32, true)?;
        if let Some(to) = self.read_mut(address, bytes.len() as u64) {
            to.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn out_of_bounds(&self, lane: u32, address: u64, bytes: u32, write: bool) -> FaultKind {
        let below = self.regions.partition_point(|region| region.base <= address).checked_sub(1);
        let place = match below.map(|at| &self.regions[at]) {
            Some(region) => {
                let (offset, size) = (address - region.base, region.bytes.len());
                format!("byte {offset} of {}, which has {size}", region.name)
            }
            None => "below all memory".into(),
        };
        FaultKind::OutOfBounds { lane, write, address, bytes, place }
    }
}
