//! A stretch of memory, as words that several threads may touch at once.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What kernels may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read it.
    ReadOnly,
    /// Read and write it.
    ReadWrite,
}

/// Memory that belongs to somebody else, such as the host's own: kernels see each other's and the host's writes.
pub struct Lent {
    /// Where kernels find the first byte.
    pub base: u64,
    /// How many bytes there are.
    pub bytes: u64,
    /// The words that hold them: the first one has the byte at `base` rounded down to a multiple of four.
    pub words: &'static [AtomicU32],
    /// What is dropped when nothing uses the words any more.
    pub keeper: Arc<dyn Any + Send + Sync>,
}

/// Where the words are.
enum Words {
    Own(Box<[AtomicU32]>),
    Lent(Lent),
}

/// A stretch of memory.
pub(crate) struct Region {
    pub(super) base: u64,
    pub(super) end: u64,
    pub(super) access: Access,
    pub(super) name: String,
    words: Words,
}

/// Bytes of a word.
const WORD: u64 = 4;

impl Region {
    pub(super) fn own(base: u64, name: &str, bytes: &[u8], access: Access) -> Self {
        let word = |chunk: &[u8]| {
            let mut word = [0; WORD as usize];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU32::new(u32::from_le_bytes(word))
        };
        let words = Words::Own(bytes.chunks(WORD as usize).map(word).collect());
        Self { base, end: base + bytes.len() as u64, access, name: name.to_owned(), words }
    }

    /// None where there are fewer words than the bytes need.
    pub(super) fn lent(lent: Lent, name: &str, access: Access) -> Option<Self> {
        let (base, end) = (lent.base, lent.base.checked_add(lent.bytes)?);
        let needed = end.div_ceil(WORD) - base / WORD;
        let fits = needed <= lent.words.len() as u64;
        let words = Words::Lent(lent);
        fits.then(|| Self { base, end, access, name: name.to_owned(), words })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end - self.base
    }

    /// Whether so many bytes from an address lie in it.
    pub(super) fn holds(&self, address: u64, bytes: u64) -> bool {
        let (inside, room) = (address.wrapping_sub(self.base), self.bytes());
        inside <= room && bytes <= room - inside
    }

    /// The words, and the address of the first one.
    pub(crate) fn words(&self) -> (u64, &[AtomicU32]) {
        let words = match &self.words {
            Words::Own(words) => words,
            Words::Lent(lent) => lent.words,
        };
        (self.base & !(WORD - 1), words)
    }

    /// Words that hold bytes of the region.
    fn covering(&self, address: u64, bytes: usize) -> (&[AtomicU32], Range<usize>) {
        let (origin, words) = self.words();
        let from = (address - origin) as usize;
        let range = from / 4..(from + bytes).div_ceil(4);
        (&words[range], from % 4..from % 4 + bytes)
    }

    /// Bytes from an address that lie in the region.
    pub(crate) fn load(&self, address: u64, to: &mut [u8]) {
        if address.is_multiple_of(WORD) && to.len().is_multiple_of(4) {
            let (words, _) = self.covering(address, to.len());
            for (to, word) in to.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                *to = word.load(Relaxed).to_le_bytes();
            }
            return;
        }
        let (words, within) = self.covering(address, to.len());
        let mut at = within.start;
        let mut to = to.iter_mut();
        for word in words {
            let bytes = word.load(Relaxed).to_le_bytes();
            for (to, byte) in to.by_ref().take(4 - at).zip(&bytes[at..]) {
                *to = *byte;
            }
            at = 0;
        }
    }

    /// Puts bytes to an address that lie in the region. Bytes beside them keep what others write meanwhile.
    pub(crate) fn store(&self, address: u64, from: &[u8]) {
        if from.is_empty() {
            return;
        }
        if address.is_multiple_of(WORD) && from.len().is_multiple_of(4) {
            let (words, _) = self.covering(address, from.len());
            for (word, from) in words.iter().zip(from.as_chunks::<4>().0) {
                word.store(u32::from_le_bytes(*from), Relaxed);
            }
            return;
        }
        let (words, within) = self.covering(address, from.len());
        let (mut at, mut left) = (within.start, from);
        for word in words {
            let count = left.len().min(4 - at);
            let (part, rest) = left.split_at(count);
            let mut bytes = [0; 4];
            bytes[at..at + count].copy_from_slice(part);
            let new = u32::from_le_bytes(bytes);
            if count == 4 {
                word.store(new, Relaxed);
            } else {
                merge(word, new, (u32::MAX >> (32 - 8 * count)) << (8 * at));
            }
            (at, left) = (0, rest);
        }
    }
}

/// Replaces the bits of `mask`.
fn merge(word: &AtomicU32, new: u32, mask: u32) {
    let changed = |old: u32| Some(old & !mask | new);
    word.fetch_update(Relaxed, Relaxed, changed).expect("every value is replaced");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_where_they_were_put() {
        let all: Vec<u8> = (0..32).collect();
        for (base, bytes) in [(64, 32u64), (65, 7), (67, 5), (66, 1)] {
            let words: Vec<AtomicU32> = (0..9).map(|_| AtomicU32::new(0x5a5a_5a5a)).collect();
            let words: &'static [AtomicU32] = words.leak();
            let lent = Lent { base, bytes, words, keeper: Arc::new(()) };
            let region = Region::lent(lent, "x", Access::ReadWrite).expect("enough words");
            for from in 0..bytes {
                for to in from..=bytes {
                    let (part, mut found) = (&all[from as usize..to as usize], vec![0; 40]);
                    region.store(base, &vec![0xee; bytes as usize]);
                    region.store(base + from, part);
                    let found = &mut found[..(to - from) as usize];
                    region.load(base + from, found);
                    assert_eq!(found, part);
                    let mut whole = vec![0; bytes as usize];
                    region.load(base, &mut whole);
                    let others = whole.iter().filter(|byte| **byte == 0xee).count() as u64;
                    assert_eq!(others, bytes - (to - from), "{base} {from} {to}");
                }
            }
            let (skew, end) = ((base % 4) as usize, (base % 4 + bytes) as usize);
            let raw: Vec<u8> = words.iter().flat_map(|w| w.load(Relaxed).to_le_bytes()).collect();
            assert!(raw[..skew].iter().chain(&raw[end..]).all(|byte| *byte == 0x5a));
        }
    }

    #[test]
    fn too_few_words_are_refused() {
        let words: &'static [AtomicU32] = vec![AtomicU32::new(0)].leak();
        for (base, bytes, fits) in [(4, 4, true), (5, 3, true), (5, 4, false), (4, 5, false)] {
            let lent = Lent { base, bytes, words, keeper: Arc::new(()) };
            assert_eq!(Region::lent(lent, "x", Access::ReadOnly).is_some(), fits);
        }
    }
}
