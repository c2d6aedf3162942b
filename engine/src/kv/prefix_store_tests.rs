//! Folders of kept prefixes: what comes back is what was there, whatever became of the files.

use super::page_memory::{PageKind, PageMemory};
use super::prefix_cache::BlockId;
use super::*;
use crate::error::Result;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const PAGE_BYTES: u64 = 24;
const WINDOW_BYTES: u64 = 40;

/// Caches on the host.
#[derive(Default)]
struct HostPages {
    compressed: HashMap<u32, Vec<u8>>,
    window: HashMap<u32, Vec<u8>>,
}

impl HostPages {
    fn pages(&mut self, kind: PageKind) -> &mut HashMap<u32, Vec<u8>> {
        match kind {
            PageKind::Compressed => &mut self.compressed,
            PageKind::Window => &mut self.window,
        }
    }
}

impl PageMemory for HostPages {
    fn page_bytes(&mut self, kind: PageKind) -> u64 {
        match kind {
            PageKind::Compressed => PAGE_BYTES,
            PageKind::Window => WINDOW_BYTES,
        }
    }
    fn read_page(&mut self, kind: PageKind, page: u32) -> Result<Vec<u8>> {
        Ok(self.pages(kind)[&page].clone())
    }
    fn write_page(&mut self, kind: PageKind, page: u32, bytes: &[u8]) -> Result<()> {
        assert_eq!(bytes.len() as u64, self.page_bytes(kind));
        self.pages(kind).insert(page, bytes.to_vec());
        Ok(())
    }
}

/// A process: a cache, its pages and what they hold.
struct Process {
    cache: PrefixCache,
    pools: PagePools,
    memory: HostPages,
    store: PrefixStore,
    restored: Restored,
}

impl Process {
    fn start(folder: &Path, salt: &str, pages: u64) -> Result<Self> {
        let mut cache = PrefixCache::new(3);
        let pools = PagePools::new(PoolPages { compressed: pages, window: 64, open: 1 });
        let mut memory = HostPages::default();
        let (store, restored) =
            PrefixStore::open((folder, salt), (&mut cache, &pools), &mut memory, 4)?;
        Ok(Self { cache, pools, memory, store, restored })
    }

    /// Computes what is missing of a prefix, with a resume point at its end.
    fn compute(&mut self, tokens: &[u32]) -> Vec<BlockId> {
        let prefix = Prefix { tokens, pictures: &[], salt: "client" };
        let mut chain = Vec::new();
        for at in 0..prefix.blocks() {
            if self.pools.compressed.free_pages() == 0 {
                assert_eq!(self.cache.evict(1), 1);
            }
            let page = self.pools.compressed.take(1).unwrap().pop().unwrap();
            let content = content(PAGE_BYTES, &tokens[..(at + 1) * PAGE_TOKENS as usize], 0);
            self.memory.compressed.insert(page.id(), content);
            let before = chain.last().copied();
            chain.push(self.cache.add(before, prefix.block(at), Arc::new(page)));
        }
        let whole = &tokens[..chain.len() * PAGE_TOKENS as usize];
        let windows = self.pools.window.take(4).unwrap();
        for (at, page) in windows.iter().enumerate() {
            self.memory.window.insert(page.id(), content(WINDOW_BYTES, whole, at));
        }
        let windows = windows.into_iter().map(Arc::new).collect();
        self.cache.retain(*chain.last().unwrap(), windows);
        chain
    }

    fn save(&mut self) {
        while self.store.save(&self.cache, &mut self.memory).unwrap() {}
    }

    /// Tokens that are found of a prefix, and where to go on; all that they lead to is what was computed.
    fn find(&mut self, tokens: &[u32]) -> (u64, u64) {
        // One token is always left to compute.
        let longer = [tokens, &[7]].concat();
        let prefix = Prefix { tokens: &longer, pictures: &[], salt: "client" };
        let hit = self.cache.find(&prefix);
        for (at, id) in hit.chain.iter().enumerate() {
            let page = self.cache.block(*id).unwrap().page.id();
            let before = &tokens[..(at + 1) * PAGE_TOKENS as usize];
            assert_eq!(self.memory.compressed[&page], content(PAGE_BYTES, before, 0));
        }
        let whole = &tokens[..hit.tokens as usize];
        for (at, page) in hit.windows.iter().enumerate() {
            assert_eq!(self.memory.window[&page.id()], content(WINDOW_BYTES, whole, at));
        }
        self.cache.check().unwrap();
        let owned = self.cache.pages();
        self.pools.compressed.check(owned).unwrap();
        self.pools.window.check(self.cache.window_pages()).unwrap();
        (hit.matched_tokens, hit.tokens)
    }
}

/// Bytes that only these tokens leave.
fn content(bytes: u64, tokens: &[u32], part: usize) -> Vec<u8> {
    let mut state = tokens.iter().fold(part as u64 + 99, |state, token| {
        (state ^ u64::from(*token)).wrapping_mul(0x0100_0000_01b3).rotate_left(11)
    });
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn tokens(seed: u32, pages: u32) -> Vec<u32> {
    (0..pages * PAGE_TOKENS as u32).map(|at| at.wrapping_mul(2_654_435_761) ^ seed).collect()
}

#[test]
fn a_process_finds_what_those_before_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let (long, short) = (tokens(1, 5), tokens(2, 2));
    let branch = [&long[..192], &tokens(3, 2)].concat();
    let mut first = Process::start(folder.path(), "a", 32).unwrap();
    assert_eq!(first.restored, Restored::default());
    for prefix in [&long, &short] {
        first.compute(prefix);
    }
    first.save();
    assert!(!first.store.save(&first.cache, &mut first.memory).unwrap(), "nothing is new");
    drop(first);

    let mut second = Process::start(folder.path(), "a", 32).unwrap();
    assert_eq!(second.restored, Restored { tokens: 7 * 64, resume_points: 2, left_out: 0 });
    assert_eq!((second.find(&long), second.find(&short)), ((320, 320), (128, 128)));
    second.compute(&branch);
    second.save();
    drop(second);

    let mut third = Process::start(folder.path(), "a", 32).unwrap();
    assert_eq!(third.restored, Restored { tokens: 9 * 64, resume_points: 3, left_out: 0 });
    assert_eq!(third.find(&branch), (320, 320));
    assert_eq!(third.find(&long), (320, 320));
    drop(third);
    let mut other = Process::start(folder.path(), "another model", 32).unwrap();
    assert_eq!(other.find(&long), (0, 0));
    assert_eq!(fs::metadata(folder.path().join("prefixes.pages")).unwrap().len(), 0);
}

#[test]
fn files_grow_no_larger_than_the_cache_however_much_passes_through() {
    let folder = tempfile::tempdir().unwrap();
    for start in 0..3 {
        let mut process = Process::start(folder.path(), "a", 10).unwrap();
        for round in 0..40 {
            process.compute(&tokens(start * 1000 + round, 3));
            if round % 3 == 0 {
                process.save();
            }
        }
        process.save();
        let length = |name| fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(length("prefixes.pages") <= 10 * PAGE_BYTES);
        assert!(length("prefixes.windows") <= 3 * 4 * WINDOW_BYTES);
        assert_eq!(process.find(&tokens(start * 1000 + 39, 3)), (192, 192));
    }
}

#[test]
fn a_smaller_cache_takes_the_last_of_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut large = Process::start(folder.path(), "a", 32).unwrap();
    for seed in 0..6 {
        large.compute(&tokens(seed, 4));
    }
    large.save();
    drop(large);
    let mut small = Process::start(folder.path(), "a", 9).unwrap();
    assert_eq!(small.find(&tokens(5, 4)), (256, 256));
    assert_eq!(small.find(&tokens(0, 4)), (0, 0));
    // What had no room is gone from the folder too.
    drop(small);
    let again = Process::start(folder.path(), "a", 32).unwrap();
    assert_eq!((again.restored.tokens, again.restored.left_out), (9 * 64, 0));
}

/// Every byte of every file is spoilt once, and every file cut at every length: what is found is
/// right, as [`Process::find`] asserts, and the rest is computed again.
#[test]
fn spoilt_files_give_less_and_never_something_else() {
    let kept = tempfile::tempdir().unwrap();
    let prefixes = [tokens(1, 3), [&tokens(1, 3)[..64], &tokens(2, 1)].concat()];
    let mut process = Process::start(kept.path(), "a", 32).unwrap();
    for prefix in &prefixes {
        process.compute(prefix);
    }
    process.save();
    drop(process);
    let (mut starts, mut whole, mut refused) = (0, 0, 0);
    for name in ["prefixes.jsonl", "prefixes.pages", "prefixes.windows"] {
        let bytes = fs::read(kept.path().join(name)).unwrap();
        let step = (bytes.len() / 160).max(1);
        for at in (0..bytes.len()).step_by(step) {
            for spoilt in
                [bytes[..at].to_vec(), flipped(&bytes, at, 0x01), flipped(&bytes, at, 0x10)]
            {
                let folder = tempfile::tempdir().unwrap();
                for file in ["prefixes.jsonl", "prefixes.pages", "prefixes.windows"] {
                    fs::copy(kept.path().join(file), folder.path().join(file)).unwrap();
                }
                fs::write(folder.path().join(name), &spoilt).unwrap();
                starts += 1;
                let mut process = match Process::start(folder.path(), "a", 32) {
                    Ok(process) => process,
                    Err(error) => {
                        assert!(
                            error.to_string().contains("is no record of kept prefixes"),
                            "{error}"
                        );
                        assert_eq!(
                            fs::read(folder.path().join(name)).unwrap(),
                            spoilt,
                            "left alone"
                        );
                        refused += 1;
                        continue;
                    }
                };
                let found = prefixes.each_ref().map(|prefix| process.find(prefix).0);
                whole += usize::from(found == [192, 128]);
                // It goes on as if new, and the next process finds all.
                for prefix in &prefixes {
                    process.compute(prefix);
                }
                process.save();
                drop(process);
                let mut next = Process::start(folder.path(), "a", 32).unwrap();
                assert_eq!(
                    prefixes.each_ref().map(|prefix| next.find(prefix)),
                    [(192, 192), (128, 128)]
                );
            }
        }
    }
    println!("{starts} starts, {whole} found all, {refused} refused");
    assert!(starts > 600 && whole < starts / 2 && refused > 0 && refused < 40);
}

fn flipped(bytes: &[u8], at: usize, bits: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= bits;
    bytes
}

#[test]
fn a_folder_has_one_process_and_one_owner() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("new").join("prefixes");
    let mut first = Process::start(&folder, "a", 32).unwrap();
    let error = Process::start(&folder, "a", 32).err().unwrap().to_string();
    assert!(error.contains("in use by another process"), "{error}");
    first.compute(&tokens(1, 3));
    first.save();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&folder).unwrap().map(std::io::Result::unwrap) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    drop(first);
    Process::start(&folder, "a", 32).unwrap();
    let error = Process::start(&parent.path().join("new/prefixes/prefixes.lock"), "a", 32);
    assert!(error.err().unwrap().to_string().starts_with("cannot make "));
}

#[test]
fn a_journal_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("prefixes.jsonl")).unwrap();
    let error = PrefixStore::check(folder.path()).unwrap_err().to_string();
    assert!(error.contains("not a regular file; name another folder"), "{error}");
}

#[test]
fn a_disk_that_is_full_costs_what_is_kept_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("prefixes.windows")).unwrap();
    let Ok(mut process) = Process::start(folder.path(), "a", 32) else {
        panic!("a device takes the place of a file");
    };
    process.compute(&tokens(1, 3));
    let error = process.store.save(&process.cache, &mut process.memory).unwrap_err();
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    assert_eq!(process.find(&tokens(1, 3)), (192, 192));
}
