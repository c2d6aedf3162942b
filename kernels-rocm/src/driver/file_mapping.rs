//! Files that a board reads in place.

use std::ffi::c_void;
use std::fs::File;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{ptr, thread};

use memmap2::{Mmap, MmapOptions};

use super::Context;
use super::bindings::{hipHostRegisterMapped, hipHostRegisterPortable};

/// Mappings start at multiples of this: the largest page of the hosts in question.
const PAGE_BYTES: u64 = 64 << 10;

/// A shared read-only mapping of part of a file, registered with the driver.
#[derive(Debug)]
pub struct FileMapping {
    context: Arc<Context>,
    /// Where kernels find the first byte that was asked for.
    address: *mut c_void,
    bytes: u64,
    file: Mmap,
}

// SAFETY: the pointer is an address for kernels; nothing here reads through it.
unsafe impl Send for FileMapping {}
// SAFETY: as above.
unsafe impl Sync for FileMapping {}

impl FileMapping {
    /// Maps and registers `bytes` of `file` from `offset`, within `patience`: a driver that does not answer
    /// for some file system leaves the thread that asked behind, and nobody else.
    ///
    /// # Errors
    /// Why not, such as a kernel that pins no pages of files; such files are read by position instead.
    pub fn register(
        context: &Arc<Context>,
        file: &File,
        offset: u64,
        bytes: u64,
        patience: Duration,
    ) -> Result<FileMapping, String> {
        let (file, context) = (file.try_clone().map_err(|e| e.to_string())?, context.clone());
        let mapped = move || FileMapping::now(&context, &file, offset, bytes);
        within(patience, mapped)
            .unwrap_or_else(|| Err(format!("the driver did not answer in {patience:?}")))
    }

    fn now(
        context: &Arc<Context>,
        file: &File,
        offset: u64,
        bytes: u64,
    ) -> Result<FileMapping, String> {
        let length = file.metadata().map_err(|e| e.to_string())?.len();
        if bytes == 0 || offset.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(format!("bytes from {offset}, {bytes} of them, of a file of {length}"));
        }
        let start = offset / PAGE_BYTES * PAGE_BYTES;
        let ahead = (offset - start) as usize;
        let mut options = MmapOptions::new();
        options.offset(start).len(ahead + bytes as usize);
        // SAFETY: nothing in this process reads through the mapping; the board does, and whoever changes
        // or cuts a weight file under a running server changes what it computes, as with any mapping.
        let map = unsafe { options.map(file) }.map_err(|e| e.to_string())?;
        context.bind().map_err(|f| f.to_string())?;
        let first = map.as_ptr().cast_mut().cast();
        let flags = hipHostRegisterPortable | hipHostRegisterMapped;
        let register = context.hip().hipHostRegister;
        // SAFETY: the mapping has as many bytes and outlives the registration, which this undoes.
        let code = unsafe { register(first, map.len() as u64, flags) };
        context.check("hipHostRegister", code).map_err(|f| f.to_string())?;
        let (context, address) = (context.clone(), ptr::null_mut());
        let mut mapping = FileMapping { context, address, bytes, file: map };
        let locate = mapping.context.hip().hipHostGetDevicePointer;
        // SAFETY: registered just now as visible to the board; writes one address.
        let code = unsafe { locate(&mut mapping.address, first, 0) };
        mapping.context.check("hipHostGetDevicePointer", code).map_err(|f| f.to_string())?;
        mapping.address = mapping.address.wrapping_byte_add(ahead);
        Ok(mapping)
    }

    /// Where kernels find the first byte.
    pub(super) fn pointer(&self) -> *mut c_void {
        self.address
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            let first = self.file.as_ptr().cast_mut().cast();
            // SAFETY: registered when this was made; whoever handed out the address has waited for
            // what was in flight.
            let _at_the_end = unsafe { (self.context.hip().hipHostUnregister)(first) };
        }
    }
}

/// What `work` gives, if it ends in time. It runs on a thread of its own, which is left behind if not;
/// what it gives then is dropped there.
fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (give, take) = mpsc::channel();
    thread::spawn(move || {
        // Nobody listens any more when the time is over.
        let _late = give.send(work());
    });
    take.recv_timeout(patience).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_does_not_end_is_left_behind() {
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let (end, wait) = mpsc::channel::<()>();
        let stuck = move || {
            let _never = wait.recv();
        };
        assert_eq!(within(Duration::from_millis(20), stuck), None);
        drop(end);
    }
}
