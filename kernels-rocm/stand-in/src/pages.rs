//! Memory of this process that kernels see as words.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tandem_gfxsim::{Access, Lent};

/// Sizes up to this are filled when they are made; larger ones stay untouched zeros.
const FILLED_BYTES: u64 = 64 << 20;
/// A NaN as f64, f32, f16 and bf16, and in its bytes one of e4m3 and of E5M2; a large number otherwise.
const PATTERN: u32 = 0x7ff9_7ff9;
const PAGE_BYTES: usize = 4096;

/// Whole pages, freed when nobody uses them any more.
pub(crate) struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the pages are reached through atomic words only, and freed once.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Pages for so many bytes, or none where the machine has no more.
    pub(crate) fn new(bytes: u64) -> Option<Arc<Pages>> {
        let size = usize::try_from(bytes.max(1)).ok()?.checked_next_multiple_of(PAGE_BYTES)?;
        let layout = Layout::from_size_align(size, PAGE_BYTES).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let pages = Pages { start, layout };
        if bytes <= FILLED_BYTES {
            for word in pages.words() {
                word.store(PATTERN, Relaxed);
            }
        }
        Some(Arc::new(pages))
    }

    /// Where they begin on the host.
    pub(crate) fn host(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: as many words are there, aligned to a page, initialised, and alive as long as `self`; everybody
        // in this process reaches them through atomics. The program's own accesses to pinned memory are on the
        // other side of the C boundary, where HIP demands that it waits for the device first.
        unsafe { words(self.host(), self.layout.size() as u64) }
    }

    /// The pages as memory at `base`, of so many bytes.
    pub(crate) fn lent(self: &Arc<Self>, base: u64, bytes: u64) -> Lent {
        // SAFETY: as in `words`; the keeper keeps the pages as long as the words are used.
        let words = unsafe { words(self.host(), self.layout.size() as u64) };
        Lent { base, bytes, words, keeper: self.clone() }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and the last one who used it is gone.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Words that lie in this process.
///
/// # Safety
/// All words that have a byte between `start` and `start + bytes` must be readable as long as they are used, and
/// writable if anybody writes them.
unsafe fn words(start: u64, bytes: u64) -> &'static [AtomicU32] {
    let (first, end) = (start & !3, (start + bytes).next_multiple_of(4));
    let pointer = std::ptr::with_exposed_provenance(first as usize);
    // SAFETY: aligned by the rounding; readable and alive by the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer, ((end - first) / 4) as usize) }
}

/// Memory of the program that it registers, with what kernels may do with it; none where a part is not mapped.
///
/// # Safety
/// It must stay mapped until the region that is made of it is freed and nothing in flight uses it.
pub(crate) unsafe fn registered(start: u64, bytes: u64) -> Option<(Lent, Access)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let access = access(&maps, start, start.checked_add(bytes)?)?;
    // SAFETY: mapped as the system says, and as long by the caller's promise; words beyond its ends lie in the same
    // pages.
    let words = unsafe { words(start, bytes) };
    Some((Lent { base: start, bytes, words, keeper: Arc::new(()) }, access))
}

/// What may be done with all addresses from `start` to `end`, by the system's list of mappings.
fn access(maps: &str, start: u64, end: u64) -> Option<Access> {
    let (mut at, mut access) = (start, Access::ReadWrite);
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        let (from, to) = (address(from)?, address(to)?);
        if at < from || at >= to {
            continue;
        }
        if !rest.starts_with('r') {
            return None;
        }
        if !rest.starts_with("rw") {
            access = Access::ReadOnly;
        }
        at = to;
        if at >= end {
            return Some(access);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_say_what_may_be_done() {
        let maps =
            "1000-3000 rw-p 0 00:00 0\n3000-4000 r--s 0 00:00 0 /x\n5000-6000 ---p 0 00:00 0\n";
        for (start, end, expected) in [
            (0x1000, 0x3000, Some(Access::ReadWrite)),
            (0x2001, 0x3001, Some(Access::ReadOnly)),
            (0x3ff0, 0x4001, None),
            (0x5000, 0x5001, None),
            (0xfff, 0x1001, None),
        ] {
            assert_eq!(access(maps, start, end), expected, "{start:#x}");
        }
    }

    #[test]
    fn new_memory_holds_no_number() {
        let pages = Pages::new(10).expect("a page");
        let word = pages.words()[0].load(Relaxed);
        assert!(f32::from_bits(word).is_nan());
        assert!(f64::from_bits(u64::from(word) << 32 | u64::from(word)).is_nan());
        assert_eq!(pages.host() % 4096, 0);
    }
}
