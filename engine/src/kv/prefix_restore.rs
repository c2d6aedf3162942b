//! A folder of kept prefixes back into a cache.

use super::page_memory::{PageKind, PageMemory};
use super::prefix::PrefixBlock;
use super::prefix_cache::BlockId;
use super::prefix_journal::{Line, Sum};
use super::prefix_store::{Kept, KeptWindows, Restored, block_sum, windows_sum};
use super::slot_file::SlotFile;
use super::{Page, PagePool, PagePools, PrefixCache};
use crate::error::Result;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Puts what a journal names into a cache.
pub(super) struct Restoring<'a> {
    pub(super) page_bytes: u64,
    pub(super) window_page_bytes: u64,
    /// Of pages and of windows.
    pub(super) files: (&'a SlotFile, &'a SlotFile),
    pub(super) pools: &'a PagePools,
    pub(super) memory: &'a mut dyn PageMemory,
    pub(super) kept: HashMap<BlockId, Kept>,
    pub(super) restored: Restored,
}

impl Restoring<'_> {
    /// All that the lines name, as far as it is there and finds room.
    ///
    /// # Errors
    /// When the system or the device fails.
    pub(super) fn run(&mut self, lines: Vec<Line>, cache: &mut PrefixCache) -> Result<()> {
        let mut found: HashMap<u64, BlockId> = HashMap::new();
        let (blocks, windows) = standing(lines);
        for (id, (before, slot, sum, content)) in blocks {
            let before = match before.map(|before| found.get(&before)) {
                None => None,
                Some(Some(before)) => Some(*before),
                Some(None) => {
                    self.restored.left_out += 1;
                    continue;
                }
            };
            match self.block((before, content), (slot, sum), cache)? {
                Some(block) => {
                    found.insert(id, block);
                }
                None => self.restored.left_out += 1,
            }
        }
        // The last ones are the ones that the cache would keep.
        let first = windows.len().saturating_sub(cache.most_resume_points());
        for (id, windows) in windows.into_iter().skip(first) {
            let block = found.get(&id).copied();
            let is_back = match block {
                Some(block) => self.windows(block, windows, cache)?,
                None => false,
            };
            self.restored.left_out += u64::from(!is_back);
        }
        self.restored.tokens = cache.blocks() as u64 * super::PAGE_TOKENS;
        self.restored.resume_points = cache.resume_points() as u64;
        Ok(())
    }

    /// A block whose page is what it should be and finds room.
    fn block(
        &mut self,
        (before, content): (Option<BlockId>, PrefixBlock),
        (slot, sum): (u64, Sum),
        cache: &mut PrefixCache,
    ) -> Result<Option<BlockId>> {
        let Some(bytes) = self.files.0.read(slot, self.page_bytes)? else { return Ok(None) };
        let sum_before = before.and_then(|before| self.kept.get(&before)).map(|kept| kept.sum);
        if !content.is_whole() || block_sum(sum_before, &content, &bytes) != sum {
            return Ok(None);
        }
        let Some(page) = room(&self.pools.compressed, cache) else { return Ok(None) };
        if before.is_some_and(|before| cache.block(before).is_none()) {
            return Ok(None);
        }
        self.memory.write_page(PageKind::Compressed, page.id(), &bytes)?;
        let id = cache.add(before, content, page);
        self.kept.entry(id).or_insert(Kept { slot, sum, windows: None });
        Ok(Some(id))
    }

    /// Makes the end of a block a resume point, if the windows are what they should be.
    fn windows(
        &mut self,
        id: BlockId,
        windows: KeptWindows,
        cache: &mut PrefixCache,
    ) -> Result<bool> {
        let Some(kept) = self.kept.get_mut(&id) else { return Ok(false) };
        let length = windows.pages.checked_mul(self.window_page_bytes);
        let Some(bytes) = length.filter(|length| *length > 0) else { return Ok(false) };
        let Some(bytes) = self.files.1.read(windows.slot, bytes)? else { return Ok(false) };
        if kept.windows.is_some()
            || cache.block(id).is_none()
            || windows_sum(kept.sum, &bytes) != windows.sum
        {
            return Ok(false);
        }
        let Ok(pages) = self.pools.window.take(windows.pages) else { return Ok(false) };
        for (page, bytes) in pages.iter().zip(bytes.chunks(self.window_page_bytes as usize)) {
            self.memory.write_page(PageKind::Window, page.id(), bytes)?;
        }
        cache.retain(id, pages.into_iter().map(Arc::new).collect());
        kept.windows = Some(windows);
        Ok(true)
    }
}

type StandingBlock = (Option<u64>, u64, Sum, PrefixBlock);

/// The blocks by their numbers, and the windows in order, whose slots nothing took over.
fn standing(lines: Vec<Line>) -> (BTreeMap<u64, StandingBlock>, Vec<(u64, KeptWindows)>) {
    let mut by_slot: HashMap<u64, u64> = HashMap::new();
    let mut blocks = BTreeMap::new();
    let mut windows: BTreeMap<usize, (u64, KeptWindows)> = BTreeMap::new();
    let mut window_by_slot: HashMap<u64, usize> = HashMap::new();
    for (at, line) in lines.into_iter().enumerate() {
        match line {
            Line::Block { id, before, slot, sum, content } => {
                if let Some(other) = by_slot.insert(slot, id) {
                    blocks.remove(&other);
                }
                blocks.insert(id, (before, slot, sum, content));
            }
            Line::Windows { id, slot, pages, sum } => {
                if let Some(other) = window_by_slot.insert(slot, at) {
                    windows.remove(&other);
                }
                windows.insert(at, (id, KeptWindows { slot, pages, sum }));
            }
        }
    }
    (blocks, windows.into_values().collect())
}

/// A free page, or that of the block that was used the longest ago.
fn room(pool: &PagePool, cache: &mut PrefixCache) -> Option<Arc<Page>> {
    loop {
        if let Ok(mut page) = pool.take(1) {
            return page.pop().map(Arc::new);
        }
        if cache.evict(1) == 0 {
            return None;
        }
    }
}
