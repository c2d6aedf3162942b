//! Memory that kernels see: regions with gaps between them, every access checked.

use std::cell::Cell;
use std::sync::Arc;

use super::region::{Access, Lent, Region};
use super::turnstile::Turnstile;
use crate::fault::FaultKind;
use crate::{CodeObject, LaunchError};

/// Where flat addresses begin to mean LDS, and scratch memory, for 4 GiB each.
pub(crate) const SHARED_BASE: u64 = 0x0002_0000_0000_0000;
pub(crate) const PRIVATE_BASE: u64 = 0x0001_0000_0000_0000;

/// Where regions begin, above all addresses of the host; their alignment, and the least gap between two.
const FIRST: u64 = 0x8000_0000_0000;
const ALIGNMENT: u64 = 1 << 16;
const GAP: u64 = 1 << 20;

/// Memory of a machine: regions, with the same addresses on each of its devices. Clones share the regions that
/// both have.
#[derive(Clone, Default)]
pub struct Memory {
    /// In the order of their addresses.
    regions: Vec<Arc<Region>>,
    /// Behind all that was ever given out, so that what was freed is not found again.
    used: u64,
    turnstile: Arc<Turnstile>,
}

/// A code object in memory, ready to be launched any number of times.
#[derive(Clone)]
pub struct Module {
    pub(crate) object: Arc<CodeObject>,
    pub(crate) base: u64,
    segments: Vec<u64>,
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

    /// Addresses of the regions that it takes.
    #[must_use]
    pub fn segments(&self) -> &[u64] {
        &self.segments
    }
}

impl Memory {
    /// Memory without regions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An address where `bytes` bytes have room, which nothing ever had.
    pub fn reserve(&mut self, bytes: u64) -> u64 {
        let base = (self.used.max(FIRST) + GAP).next_multiple_of(ALIGNMENT);
        self.used = base + bytes;
        base
    }

    /// A new region that holds `bytes`; its address. An access that begins in it and ends one byte behind it is a
    /// fault. The name is for messages.
    pub fn allocate(&mut self, name: &str, bytes: &[u8], access: Access) -> u64 {
        let base = self.reserve(bytes.len() as u64);
        self.insert(Region::own(base, name, bytes, access));
        base
    }

    /// A new region of somebody else's words, at an address from [`Memory::reserve`] or of the host.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Unfit`] if it overlaps another one, has a part where flat addresses mean LDS or scratch, or
    /// has more bytes than words.
    pub fn lend(&mut self, name: &str, lent: Lent, access: Access) -> Result<(), LaunchError> {
        let (base, bytes) = (lent.base, lent.bytes);
        let unfit = || LaunchError::Unfit {
            kernel: name.to_owned(),
            reason: format!("{bytes} bytes at {base:#x} are not free"),
        };
        let region = Region::lent(lent, name, access).ok_or_else(unfit)?;
        let is_taken = self.regions.iter().any(|r| r.base < region.end && base < r.end);
        if is_taken || region.end > PRIVATE_BASE {
            return Err(unfit());
        }
        self.insert(region);
        Ok(())
    }

    /// Frees the region that begins at `base`; whether there was one.
    pub fn free(&mut self, base: u64) -> bool {
        let found = self.regions.binary_search_by_key(&base, |region| region.base);
        found.map(|at| self.regions.remove(at)).is_ok()
    }

    /// The memory with those of its regions whose address suits.
    #[must_use]
    pub fn restricted(&self, suits: impl Fn(u64) -> bool) -> Memory {
        let regions = self.regions.iter().filter(|region| suits(region.base)).cloned().collect();
        Memory { regions, used: self.used, turnstile: self.turnstile.clone() }
    }

    /// The region that an address lies in: where it begins, and its size in bytes.
    #[must_use]
    pub fn extent(&self, address: u64) -> Option<(u64, u64)> {
        let region = &self.regions[self.region_of(address, 0)?];
        Some((region.base, region.bytes()))
    }

    /// What the host reads: `bytes` bytes from `address`, or none if they do not lie in one region.
    #[must_use]
    pub fn read(&self, address: u64, bytes: u64) -> Option<Vec<u8>> {
        let region = &self.regions[self.region_of(address, bytes)?];
        let mut read = vec![0; bytes as usize];
        region.load(address, &mut read);
        Some(read)
    }

    /// The same into a buffer; whether the bytes lie in one region.
    #[must_use]
    pub fn read_into(&self, address: u64, to: &mut [u8]) -> bool {
        let region = self.region_of(address, to.len() as u64).map(|at| &self.regions[at]);
        region.map(|region| region.load(address, to)).is_some()
    }

    /// What the host writes, whatever kernels may do; whether the bytes lie in one region.
    #[must_use]
    pub fn write(&self, address: u64, from: &[u8]) -> bool {
        let region = self.region_of(address, from.len() as u64).map(|at| &self.regions[at]);
        region.map(|region| region.store(address, from)).is_some()
    }

    /// Puts a code object into memory.
    pub fn load(&mut self, object: &Arc<CodeObject>) -> Module {
        let bytes = object.segments().iter().map(|s| s.address + s.bytes.len() as u64);
        let base = self.reserve(bytes.max().unwrap_or(0));
        let mut segments = Vec::new();
        for segment in object.segments() {
            let access = if segment.is_writable { Access::ReadWrite } else { Access::ReadOnly };
            let at = base + segment.address;
            segments.push(at);
            self.insert(Region::own(at, "the code object", &segment.bytes, access));
        }
        for &(place, offset) in object.relocations() {
            // One that lies nowhere has nothing to relocate.
            let _is_there = self.write(base + place, &(base + offset).to_le_bytes());
        }
        Module { object: Arc::clone(object), base, segments }
    }

    fn insert(&mut self, region: Region) {
        let at = self.regions.partition_point(|other| other.base < region.base);
        self.regions.insert(at, Arc::new(region));
    }

    fn region_of(&self, address: u64, bytes: u64) -> Option<usize> {
        let at = self.regions.partition_point(|region| region.base <= address).checked_sub(1)?;
        self.holds(at, address, bytes).then_some(at)
    }

    fn holds(&self, at: usize, address: u64, bytes: u64) -> bool {
        self.regions.get(at).is_some_and(|region| region.holds(address, bytes))
    }

    /// What launches take turns at whose waves may wait for those of others.
    pub(super) fn turnstile(&self) -> &Arc<Turnstile> {
        &self.turnstile
    }
}

/// Memory as one thread sees it.
pub(crate) struct View<'a> {
    memory: &'a Memory,
    /// The region that was found last; the next is often the same.
    recent: Cell<usize>,
}

impl<'a> View<'a> {
    pub(super) fn new(memory: &'a Memory) -> Self {
        Self { memory, recent: Cell::new(0) }
    }

    /// The region that holds so many bytes from an address.
    pub(super) fn region(&self, address: u64, bytes: u64) -> Option<&'a Region> {
        let at = self.recent.get();
        if self.memory.holds(at, address, bytes) {
            return Some(&self.memory.regions[at]);
        }
        let at = self.memory.region_of(address, bytes)?;
        self.recent.set(at);
        Some(&self.memory.regions[at])
    }

    /// Checks what a lane is about to do.
    pub(crate) fn check(
        &self,
        lane: u32,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Result<&'a Region, FaultKind> {
        let Some(region) = self.region(address, bytes.into()) else {
            return Err(self.out_of_bounds(lane, address, bytes, write));
        };
        if write && region.access == Access::ReadOnly {
            let (region, offset) = (region.name.clone(), address - region.base);
            return Err(FaultKind::ReadOnly { lane, region, offset });
        }
        Ok(region)
    }

    /// What a lane reads; as many bytes as `to` has.
    pub(crate) fn get(&self, lane: u32, address: u64, to: &mut [u8]) -> Result<(), FaultKind> {
        self.check(lane, address, to.len() as u32, false)?.load(address, to);
        Ok(())
    }

    /// Writes for a lane.
    pub(crate) fn put(&self, lane: u32, address: u64, bytes: &[u8]) -> Result<(), FaultKind> {
        self.check(lane, address, bytes.len() as u32, true)?.store(address, bytes);
        Ok(())
    }

    fn out_of_bounds(&self, lane: u32, address: u64, bytes: u32, write: bool) -> FaultKind {
        let regions = &self.memory.regions;
        let below = regions.partition_point(|region| region.base <= address).checked_sub(1);
        let place = match below.map(|at| &regions[at]) {
            Some(region) => {
                let (offset, size) = (address - region.base, region.bytes());
                format!("byte {offset} of {}, which has {size}", region.name)
            }
            None => "below all memory".into(),
        };
        FaultKind::OutOfBounds { lane, write, address, bytes, place }
    }
}
