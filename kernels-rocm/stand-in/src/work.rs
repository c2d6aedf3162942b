//! What streams do: launches, copies, fills.

use std::sync::Arc;

use tandem_gfxsim::{Dispatch, FaultKind, LaunchError, Memory, Schedule, launch};

use crate::code::Code;
use crate::module::Function;

/// Something to do, not tied to a time.
pub(crate) enum Work {
    Launch {
        function: Function,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_lds_bytes: u32,
        arguments: Vec<u8>,
    },
    Copy {
        to: Place,
        from: Place,
        bytes: u64,
    },
    Fill {
        to: u64,
        value: u8,
        bytes: u64,
    },
}

/// Where bytes of a copy are.
pub(crate) enum Place {
    /// In memory that kernels see.
    Memory(u64),
    /// Here, taken when the copy was asked for.
    Bytes(Vec<u8>),
    /// In memory of the program, which waits for the copy.
    Host(u64),
}

/// Memory as it was when work was given out.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) board: usize,
    /// What the board's kernels may use.
    pub(crate) view: Arc<Memory>,
    /// All of it, for copies.
    pub(crate) whole: Arc<Memory>,
}

/// Work that is to be done.
pub(crate) struct Order {
    pub(crate) work: Arc<Work>,
    pub(crate) scene: Scene,
    pub(crate) schedule: Schedule,
}

/// Work that went wrong.
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) words: String,
}

/// Bytes of a copy that go at once.
const CHUNK_BYTES: u64 = 1 << 20;

impl Order {
    pub(crate) fn board(&self) -> usize {
        self.scene.board
    }

    pub(crate) fn perform(&self) -> Result<(), Failure> {
        match &*self.work {
            Work::Launch { function, grid, block, dynamic_lds_bytes, arguments } => {
                let dispatch = Dispatch {
                    module: function.module(),
                    kernel: function.name(),
                    grid: *grid,
                    block: *block,
                    arguments,
                    dynamic_lds_bytes: *dynamic_lds_bytes,
                };
                let outcome = launch(&self.scene.view, &dispatch, &self.schedule);
                outcome.map(|_| ()).map_err(|error| self.failed(&error))
            }
            Work::Copy { to, from, bytes } => self.copy(to, from, *bytes),
            Work::Fill { to, value, bytes } => {
                let chunk = vec![*value; (*bytes).min(CHUNK_BYTES) as usize];
                self.in_chunks(*bytes, |at, size| self.write(to + at, &chunk[..size]))
            }
        }
    }

    fn copy(&self, to: &Place, from: &Place, bytes: u64) -> Result<(), Failure> {
        let mut buffer = vec![0; bytes.min(CHUNK_BYTES) as usize];
        self.in_chunks(bytes, |at, size| {
            let chunk = match from {
                Place::Bytes(bytes) => &bytes[at as usize..at as usize + size],
                Place::Memory(address) => {
                    let is_there = self.scene.whole.read_into(address + at, &mut buffer[..size]);
                    is_there.then_some(&buffer[..size]).ok_or_else(|| Failure::gone(*address))?
                }
                Place::Host(_) => return Err(Failure::broken()),
            };
            match to {
                Place::Memory(address) => self.write(address + at, chunk),
                Place::Host(address) => {
                    let to = std::ptr::with_exposed_provenance_mut((address + at) as usize);
                    // SAFETY: the program said that so many bytes may be written there, and waits until they are;
                    // the chunk is memory of ours.
                    unsafe { std::ptr::copy_nonoverlapping(chunk.as_ptr(), to, size) };
                    Ok(())
                }
                Place::Bytes(_) => Err(Failure::broken()),
            }
        })
    }

    fn in_chunks(
        &self,
        bytes: u64,
        mut each: impl FnMut(u64, usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut at = 0;
        while at < bytes {
            let size = (bytes - at).min(CHUNK_BYTES);
            each(at, size as usize)?;
            at += size;
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Failure> {
        let is_there = self.scene.whole.write(address, from);
        is_there.then_some(()).ok_or_else(|| Failure::gone(address))
    }

    /// A launch that went wrong, with a hint where memory is another board's.
    fn failed(&self, error: &LaunchError) -> Failure {
        let LaunchError::Fault(fault) = error else {
            return Failure { code: Code::LAUNCH_FAILURE, words: error.to_string() };
        };
        let code = match fault.kind {
            FaultKind::OutOfBounds { .. } | FaultKind::ReadOnly { .. } => Code::ILLEGAL_ADDRESS,
            FaultKind::StepLimit(_) => Code::TIME_OUT,
            _ => Code::LAUNCH_FAILURE,
        };
        let mut words = format!("{fault}, under {:?}", self.schedule);
        if let FaultKind::OutOfBounds { address, .. } = fault.kind
            && self.scene.whole.extent(address).is_some()
        {
            words += "; the memory is another device's, whose peer access is not enabled";
        }
        Failure { code, words }
    }
}

impl Failure {
    /// What a bug of ours makes.
    pub(crate) fn broken() -> Failure {
        Failure { code: Code::UNKNOWN, words: "the stand-in itself is broken".into() }
    }

    fn gone(address: u64) -> Failure {
        let words = format!("memory at {address:#x} is gone");
        Failure { code: Code::ILLEGAL_ADDRESS, words }
    }
}
