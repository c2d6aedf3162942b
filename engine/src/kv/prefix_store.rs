//! The prefix cache in a folder, for the next process.

use super::page_memory::{PageKind, PageMemory};
use super::prefix::PrefixBlock;
use super::prefix_cache::{BlockId, KeptBlock};
use super::prefix_journal::{Head, Journal, Line, Sum};
use super::prefix_restore::Restoring;
use super::slot_file::{SlotFile, private, refused};
use super::{Page, PagePools, PrefixCache};
use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

const JOURNAL: &str = "prefixes.jsonl";
/// What [`PrefixStore::save`] writes before it lets others go on.
const SLICE_BYTES: u64 = 32 << 20;
/// Lines of a journal that are nobody's any longer are let be up to so many.
const SPARE_LINES: usize = 4096;

/// Keeps in a folder what a prefix cache holds: pages in two files of slots, and a journal that says
/// which prefix a slot belongs to. Every line has a digest over its page, its tokens and all that
/// comes before them, so whatever an interrupted write leaves, or another process spoils, is not
/// found; nothing waits for the disk. The files are for their owner alone, and hold no more pages than
/// the cache.
#[derive(Debug)]
pub struct PrefixStore {
    journal: Journal,
    pages: SlotFile,
    windows: SlotFile,
    window_page_bytes: u64,
    kept: HashMap<BlockId, Kept>,
    /// Of the cache, when all of it was saved.
    saved_uses: u64,
    _lock: Lock,
}

/// A file that is locked as long as this lives.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // To close it is not enough where this process is just starting another, which has it open until
        // it is another program. What fails here ends with the process.
        let _ = self.0.unlock();
    }
}

/// Where a block is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) slot: u64,
    pub(super) sum: Sum,
    pub(super) windows: Option<KeptWindows>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct KeptWindows {
    pub(super) slot: u64,
    pub(super) pages: u64,
    pub(super) sum: Sum,
}

/// What a folder gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    /// Tokens whose compressed entries are back.
    pub tokens: u64,
    /// Points to go on from.
    pub resume_points: u64,
    /// Pages and windows that were left out, as they were not what the journal says or there was no
    /// room.
    pub left_out: u64,
}

impl PrefixStore {
    /// Makes a folder if there is none, and sees whether it can be opened: for whoever has much to do
    /// before that.
    ///
    /// # Errors
    /// As [`PrefixStore::open`].
    pub fn check(folder: &Path) -> Result<()> {
        let _lock = lock(folder)?;
        Journal::read(&folder.join(JOURNAL), &Head::new("", 0, 0)).map(|_| ())
    }

    /// Opens a folder, or makes it, and puts what it holds into an empty `cache`, as far as there are
    /// pages. What was kept under another `salt`, which names all that the bytes depend on besides
    /// the prefixes, is given up.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::File`] when the folder's journal is none, [`Error::Argument`] when
    /// another process has the folder, and [`Error::Device`].
    pub fn open(
        (folder, salt): (&Path, &str),
        (cache, pools): (&mut PrefixCache, &PagePools),
        memory: &mut dyn PageMemory,
        window_pages: u64,
    ) -> Result<(Self, Restored)> {
        let lock = lock(folder)?;
        let window_page_bytes = memory.page_bytes(PageKind::Window);
        let page_bytes = memory.page_bytes(PageKind::Compressed);
        let window_bytes = window_pages * window_page_bytes;
        let head = Head::new(salt, page_bytes, window_bytes);
        let path = folder.join(JOURNAL);
        let lines = Journal::read(&path, &head)?.unwrap_or_default();
        let pages = SlotFile::open(folder.join("prefixes.pages"), page_bytes)?;
        let windows = SlotFile::open(folder.join("prefixes.windows"), window_bytes)?;
        let mut restoring = Restoring {
            page_bytes,
            window_page_bytes,
            files: (&pages, &windows),
            pools,
            memory,
            kept: HashMap::new(),
            restored: Restored::default(),
        };
        restoring.run(lines, cache)?;
        let Restoring { mut kept, restored, .. } = restoring;
        // What had to make room for others is not there any more.
        kept.retain(|id, _| cache.block(*id).is_some());
        let journal = Journal::replace(path, head, &record(&kept, cache))?;
        let saved_uses = cache.uses();
        let mut store =
            Self { journal, pages, windows, window_page_bytes, kept, saved_uses, _lock: lock };
        store.claim_slots()?;
        Ok((store, restored))
    }

    /// Saves what is new in the cache, or as much of it as a slice has room for; answers whether there
    /// is more.
    ///
    /// # Errors
    /// [`Error::Io`], after which nothing more should be saved, and [`Error::Device`].
    pub fn save(&mut self, cache: &PrefixCache, memory: &mut dyn PageMemory) -> Result<bool> {
        if self.saved_uses == cache.uses() {
            return Ok(false);
        }
        self.forget(cache);
        let (mut lines, mut written_bytes, mut is_whole) = (Vec::new(), 0, true);
        for id in cache.in_order() {
            let Some(block) = cache.block(id) else { continue };
            if written_bytes >= SLICE_BYTES {
                is_whole = false;
                break;
            }
            if !self.kept.contains_key(&id) {
                written_bytes += self.save_block(id, block, memory, &mut lines)?;
            }
            if !block.windows.is_empty() && self.kept[&id].windows.is_none() {
                written_bytes += self.save_windows(id, block.windows, memory, &mut lines)?;
            }
        }
        self.journal.append(&lines)?;
        let live =
            self.kept.len() + self.kept.values().filter(|kept| kept.windows.is_some()).count();
        if self.journal.lines > 2 * live + SPARE_LINES {
            self.journal.rewrite(&record(&self.kept, cache))?;
        }
        if is_whole {
            self.saved_uses = cache.uses();
        }
        Ok(!is_whole)
    }

    fn save_block(
        &mut self,
        id: BlockId,
        block: KeptBlock<'_>,
        memory: &mut dyn PageMemory,
        lines: &mut Vec<Line>,
    ) -> Result<u64> {
        let bytes = memory.read_page(PageKind::Compressed, block.page.id())?;
        let sum =
            block_sum(block.before.map(|before| self.kept[&before].sum), block.content, &bytes);
        let slot = self.pages.take();
        self.pages.write(slot, &bytes)?;
        let kept = Kept { slot, sum, windows: None };
        lines.push(kept.line(id, block));
        self.kept.insert(id, kept);
        Ok(bytes.len() as u64)
    }

    fn save_windows(
        &mut self,
        id: BlockId,
        windows: &[Arc<Page>],
        memory: &mut dyn PageMemory,
        lines: &mut Vec<Line>,
    ) -> Result<u64> {
        let mut bytes = Vec::with_capacity(windows.len() * self.window_page_bytes as usize);
        for page in windows {
            bytes.extend(memory.read_page(PageKind::Window, page.id())?);
        }
        let kept = self.kept.get_mut(&id).expect("a block is saved before its windows");
        let (slot, pages) = (self.windows.take(), windows.len() as u64);
        self.windows.write(slot, &bytes)?;
        let windows = KeptWindows { slot, pages, sum: windows_sum(kept.sum, &bytes) };
        kept.windows = Some(windows);
        lines.push(windows.line(id));
        Ok(bytes.len() as u64)
    }

    /// Gives back the slots of what the cache has given up.
    fn forget(&mut self, cache: &PrefixCache) {
        let Self { kept, pages, windows, .. } = self;
        kept.retain(|id, kept| {
            let block = cache.block(*id);
            if block.is_none_or(|block| block.windows.is_empty())
                && let Some(given_up) = kept.windows.take()
            {
                windows.give(given_up.slot);
            }
            if block.is_none() {
                pages.give(kept.slot);
            }
            block.is_some()
        });
    }

    fn claim_slots(&mut self) -> Result<()> {
        let taken: BTreeSet<u64> = self.kept.values().map(|kept| kept.slot).collect();
        self.pages.take_only(&taken);
        self.pages.trim()?;
        let windows = self.kept.values().filter_map(|kept| kept.windows);
        self.windows.take_only(&windows.map(|windows| windows.slot).collect());
        self.windows.trim()
    }
}

impl Kept {
    fn line(&self, id: BlockId, block: KeptBlock<'_>) -> Line {
        let (id, before) = (id.number(), block.before.map(BlockId::number));
        Line::Block { id, before, slot: self.slot, sum: self.sum, content: block.content.clone() }
    }
}

impl KeptWindows {
    fn line(&self, id: BlockId) -> Line {
        Line::Windows { id: id.number(), slot: self.slot, pages: self.pages, sum: self.sum }
    }
}

/// The lines of all that is kept, each behind those it builds on.
fn record(kept: &HashMap<BlockId, Kept>, cache: &PrefixCache) -> Vec<Line> {
    let mut lines = Vec::new();
    for id in cache.in_order() {
        if let (Some(kept), Some(block)) = (kept.get(&id), cache.block(id)) {
            lines.push(kept.line(id, block));
            lines.extend(kept.windows.map(|windows| windows.line(id)));
        }
    }
    lines
}

/// Holds the folder, which is made if need be, against other processes.
fn lock(folder: &Path) -> Result<Lock> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| refused("make", folder, source))?;
    let path = folder.join("prefixes.lock");
    let file = private().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|source| refused("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => {
            let problem = format!(
                "{} is in use by another process; stop it or name another folder",
                folder.display()
            );
            Err(Error::argument("prefix cache folder", problem))
        }
        Err(TryLockError::Error(source)) => Err(refused("lock", &path, source)),
    }
}

pub(super) fn block_sum(before: Option<Sum>, content: &PrefixBlock, bytes: &[u8]) -> Sum {
    let content = serde_json::to_vec(content).expect("numbers and text are JSON");
    let mut hash = Sha256::new();
    hash.update(b"block");
    hash.update([u8::from(before.is_some())]);
    hash.update(before.unwrap_or_default().map(u64::to_le_bytes).as_flattened());
    hash.update((content.len() as u64).to_le_bytes());
    hash.update(content);
    hash.update(bytes);
    sum(hash)
}

pub(super) fn windows_sum(block: Sum, bytes: &[u8]) -> Sum {
    let mut hash = Sha256::new();
    hash.update(b"windows");
    hash.update(block.map(u64::to_le_bytes).as_flattened());
    hash.update(bytes);
    sum(hash)
}

fn sum(hash: Sha256) -> Sum {
    let digest = hash.finalize();
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| digest[at + byte]));
    [word(0), word(8)]
}
