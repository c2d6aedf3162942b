//! LDS of a workgroup, with a shadow that knows who did what to each byte.

use super::wave::Wave;
use crate::fault::FaultKind;

/// What is known of a byte.
#[derive(Clone, Copy)]
struct Shadow {
    /// The wave that wrote last; [`NOBODY`] at first.
    writer: u8,
    is_initialised: bool,
    /// Whether that write may still be on its way.
    is_in_flight: bool,
    /// Whether it was an atomic operation.
    is_atomic: bool,
    /// The barrier interval in which it landed.
    written: u32,
    /// Waves that read in the interval `read`.
    readers: u32,
    read: u32,
}

const NOBODY: u8 = u8::MAX;

/// LDS of one workgroup.
pub(crate) struct Lds {
    bytes: Vec<u8>,
    shadow: Vec<Shadow>,
}

/// How a write comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Plain,
    /// As part of an atomic operation, which may meet other atomic operations.
    Atomic,
}

impl Lds {
    /// LDS of `bytes` bytes in which nothing is written.
    pub(crate) fn new(bytes: u32, poison: u32) -> Self {
        let shadow = Shadow {
            writer: NOBODY,
            is_initialised: false,
            is_in_flight: false,
            is_atomic: false,
            written: 0,
            readers: 0,
            read: 0,
        };
        let bytes = bytes as usize;
        let poison = poison.to_le_bytes();
        Self { bytes: (0..bytes).map(|at| poison[at % 4]).collect(), shadow: vec![shadow; bytes] }
    }

    fn range(
        &self,
        lane: u32,
        address: u64,
        bytes: u32,
    ) -> Result<std::ops::Range<usize>, FaultKind> {
        let size = self.bytes.len() as u64;
        if address.saturating_add(bytes.into()) > size {
            // The first byte that is behind the end.
            return Err(FaultKind::LdsOutOfBounds {
                lane,
                address: address.max(size),
                size: size as u32,
            });
        }
        Ok(address as usize..address as usize + bytes as usize)
    }

    /// What a lane reads. The result has as many bytes as `to`.
    pub(crate) fn read(
        &mut self,
        wave: &Wave,
        lane: u32,
        address: u64,
        to: &mut [u8],
    ) -> Result<(), FaultKind> {
        let range = self.range(lane, address, to.len() as u32)?;
        for (shadow, address) in self.shadow[range.clone()].iter_mut().zip(address as u32..) {
            let writer = u32::from(shadow.writer);
            let is_other = shadow.writer != NOBODY && writer != wave.id;
            if is_other && shadow.is_in_flight {
                return Err(FaultKind::LdsInFlight { lane, address, writer });
            }
            if !shadow.is_initialised {
                return Err(FaultKind::LdsUninitialised { lane, address });
            }
            if is_other && shadow.written == wave.interval {
                return Err(FaultKind::LdsReadAfterWrite { lane, address, writer });
            }
            if shadow.read != wave.interval {
                (shadow.read, shadow.readers) = (wave.interval, 0);
            }
            shadow.readers |= 1 << wave.id;
        }
        to.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    /// What is there, for an atomic operation: races are its write's concern.
    pub(crate) fn read_for_atomic(
        &self,
        lane: u32,
        address: u64,
        to: &mut [u8],
    ) -> Result<(), FaultKind> {
        let range = self.range(lane, address, to.len() as u32)?;
        if let Some(at) =
            self.shadow[range.clone()].iter().position(|shadow| !shadow.is_initialised)
        {
            return Err(FaultKind::LdsUninitialised {
                lane,
                address: (address + at as u64) as u32,
            });
        }
        to.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    /// Notes that a write is on its way. Nothing can be known of its value yet.
    pub(crate) fn announce(
        &mut self,
        wave: &Wave,
        lane: u32,
        address: u64,
        bytes: u32,
        write: Write,
    ) -> Result<(), FaultKind> {
        let range = self.range(lane, address, bytes)?;
        for (shadow, address) in self.shadow[range].iter_mut().zip(address as u32..) {
            shadow.check_write(wave, lane, address, write)?;
            shadow.writer = wave.id as u8;
            shadow.is_in_flight = true;
            shadow.is_atomic = write == Write::Atomic;
            shadow.written = wave.interval;
            shadow.is_initialised |= write == Write::Plain;
        }
        Ok(())
    }

    /// Writes what was announced.
    pub(crate) fn write(&mut self, lane: u32, address: u64, from: &[u8]) -> Result<(), FaultKind> {
        let range = self.range(lane, address, from.len() as u32)?;
        self.shadow[range.clone()].iter_mut().for_each(|shadow| shadow.is_initialised = true);
        self.bytes[range].copy_from_slice(from);
        Ok(())
    }

    /// Notes that a write is done: other waves may see it behind the next barrier.
    pub(crate) fn land(
        &mut self,
        wave: &Wave,
        lane: u32,
        address: u64,
        bytes: u32,
    ) -> Result<(), FaultKind> {
        let range = self.range(lane, address, bytes)?;
        for shadow in &mut self.shadow[range] {
            if u32::from(shadow.writer) == wave.id {
                shadow.is_in_flight = false;
                shadow.written = wave.interval;
            }
        }
        Ok(())
    }
}

impl Shadow {
    fn check_write(
        &self,
        wave: &Wave,
        lane: u32,
        address: u32,
        write: Write,
    ) -> Result<(), FaultKind> {
        let readers = self.readers & !(1 << wave.id);
        if self.read == wave.interval && readers != 0 {
            return Err(FaultKind::LdsWriteAfterRead { lane, address, readers });
        }
        let is_other = self.writer != NOBODY && u32::from(self.writer) != wave.id;
        let is_recent = self.is_in_flight || self.written == wave.interval;
        let both_atomic = self.is_atomic && write == Write::Atomic;
        if is_other && is_recent && !both_atomic {
            let writer = self.writer.into();
            return Err(FaultKind::LdsWriteAfterWrite { lane, address, writer });
        }
        Ok(())
    }
}
