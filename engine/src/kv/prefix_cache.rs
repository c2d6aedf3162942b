//! Pages of earlier prompts and answers.

use super::lease::IdlePages;
use super::prefix::PrefixBlock;
use super::{Lease, PAGE_TOKENS, Page, Prefix, PrefixHit};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

/// Names a block as long as the cache lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(u64);

impl BlockId {
    /// Its number, greater than those of all blocks before it.
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// Keeps whole pages of compressed entries, and the windows at some of their ends, for sequences
/// that begin alike.
///
/// A block is found by a hash chained from the first block on, and taken only when its tokens,
/// pictures and salt and the block before it are equal, so a hash alone decides nothing. Going on
/// from a block takes the window before its end as well: such ends are resume points. Everything
/// that nobody reads goes when its page is wanted, the least recently used first, and ends of chains
/// before what they follow.
#[derive(Debug)]
pub struct PrefixCache {
    hasher: RandomState,
    resume_points: usize,
    blocks: HashMap<BlockId, Block>,
    by_hash: HashMap<u64, Vec<BlockId>>,
    /// Blocks that none follows, by when they were used.
    leaves: BTreeSet<(u64, BlockId)>,
    /// Blocks with windows, by when something went on from there.
    resumable: BTreeSet<(u64, BlockId)>,
    idle: IdlePages,
    /// Window pages, by how many resume points hold them.
    held_windows: HashMap<u32, u32>,
    /// Counts uses, and names blocks.
    uses: u64,
    counts: PrefixCounts,
}

#[derive(Debug)]
struct Block {
    before: Option<BlockId>,
    content: PrefixBlock,
    hash: u64,
    page: Arc<Page>,
    lease: Weak<Lease>,
    /// Blocks that follow it.
    following: u64,
    used: u64,
    windows: Vec<Arc<Page>>,
    resumed: u64,
}

/// What the cache has under a [`BlockId`].
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptBlock<'a> {
    pub(super) before: Option<BlockId>,
    pub(super) content: &'a PrefixBlock,
    pub(super) page: &'a Page,
    pub(super) windows: &'a [Arc<Page>],
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrefixCounts {
    /// Tokens of prefixes that were looked for and started.
    pub lookup_tokens: u64,
    /// Tokens of these that were not computed again.
    pub hit_tokens: u64,
    /// Pages that were given up for others.
    pub evicted_pages: u64,
    /// Resume points that were given up for others.
    pub evicted_resume_points: u64,
}

impl PrefixCache {
    /// Empty, for `resume_points` at most.
    pub fn new(resume_points: u64) -> Self {
        Self {
            hasher: RandomState::new(),
            resume_points: resume_points as usize,
            blocks: HashMap::new(),
            by_hash: HashMap::new(),
            leaves: BTreeSet::new(),
            resumable: BTreeSet::new(),
            idle: IdlePages::default(),
            held_windows: HashMap::new(),
            uses: 0,
            counts: PrefixCounts::default(),
        }
    }

    /// What there is of a prefix: pages of its leading blocks up to the last resume point. At least
    /// one token is left to compute.
    pub fn find(&mut self, prefix: &Prefix<'_>) -> PrefixHit {
        let mut chain = Vec::new();
        let (mut before, mut hash) = (None, 0);
        for at in 0..prefix.blocks() {
            if (at as u64 + 1) * PAGE_TOKENS >= prefix.tokens.len() as u64 {
                break;
            }
            let content = prefix.block(at);
            hash = self.hasher.hash_one((hash, &content));
            let Some(id) = self.equal(hash, before, &content) else { break };
            chain.push(id);
            before = Some(id);
        }
        let matched_tokens = chain.len() as u64 * PAGE_TOKENS;
        let resumes = |id: &BlockId| !self.blocks[id].windows.is_empty();
        let resumed = chain.iter().rposition(resumes).map_or(0, |last| last + 1);
        let pages = chain.iter().map(|id| self.lease(*id)).collect();
        let last = resumed.checked_sub(1).map(|last| chain[last]);
        for id in &chain {
            self.touch(*id);
        }
        if let Some(id) = last {
            self.uses += 1;
            let block = self.blocks.get_mut(&id).expect("a block that was found is there");
            self.resumable.remove(&(block.resumed, id));
            block.resumed = self.uses;
            self.resumable.insert((self.uses, id));
        }
        PrefixHit {
            tokens: resumed as u64 * PAGE_TOKENS,
            matched_tokens,
            pages,
            windows: last.map_or_else(Vec::new, |id| self.blocks[&id].windows.clone()),
            chain,
        }
    }

    /// Counts a prefix that starts.
    pub fn note(&mut self, lookup_tokens: u64, hit_tokens: u64) {
        self.counts.lookup_tokens += lookup_tokens;
        self.counts.hit_tokens += hit_tokens;
    }

    /// Adds block `at` of a prefix after the block `before`, which the caller holds a lease of. When
    /// there is an equal one already, that is it and `page` is given back.
    pub(super) fn insert(
        &mut self,
        before: Option<BlockId>,
        prefix: &Prefix<'_>,
        at: usize,
        page: Arc<Page>,
    ) -> (BlockId, Arc<Lease>) {
        let id = self.add(before, prefix.block(at), page);
        (id, self.lease(id))
    }

    /// Adds a block after the block `before`, which is there. When there is an equal one already,
    /// that is it and `page` is given back.
    pub(super) fn add(
        &mut self,
        before: Option<BlockId>,
        content: PrefixBlock,
        page: Arc<Page>,
    ) -> BlockId {
        let hash = before.map_or(0, |before| self.blocks[&before].hash);
        let hash = self.hasher.hash_one((hash, &content));
        if let Some(id) = self.equal(hash, before, &content) {
            self.touch(id);
            return id;
        }
        self.uses += 1;
        let (id, used) = (BlockId(self.uses), self.uses);
        if let Some(before) = before {
            let block = self.blocks.get_mut(&before).expect("a block that is read stays");
            block.following += 1;
            self.leaves.remove(&(block.used, before));
        }
        self.idle.add(1);
        let lease = Weak::new();
        let block = Block {
            before,
            content,
            hash,
            page,
            lease,
            following: 0,
            used,
            windows: Vec::new(),
            resumed: 0,
        };
        self.blocks.insert(id, block);
        self.by_hash.entry(hash).or_default().push(id);
        self.leaves.insert((used, id));
        id
    }

    /// A block: the one before it, what it is, and its pages: of compressed entries, and of the
    /// window before its end where that is a resume point.
    pub(super) fn block(&self, id: BlockId) -> Option<KeptBlock<'_>> {
        let Block { before, content, page, windows, .. } = self.blocks.get(&id)?;
        Some(KeptBlock { before: *before, content, page, windows })
    }

    /// All blocks, each behind the one before it.
    pub(super) fn in_order(&self) -> Vec<BlockId> {
        let mut ids: Vec<_> = self.blocks.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Makes the end of a block a resume point: keeps the window pages before it.
    pub(crate) fn retain(&mut self, id: BlockId, windows: Vec<Arc<Page>>) {
        let Some(block) = self.blocks.get_mut(&id) else { return };
        if windows.is_empty() || !block.windows.is_empty() || self.resume_points == 0 {
            return;
        }
        self.uses += 1;
        for page in &windows {
            *self.held_windows.entry(page.id()).or_default() += 1;
        }
        (block.windows, block.resumed) = (windows, self.uses);
        self.resumable.insert((self.uses, id));
        while self.resumable.len() > self.resume_points {
            let Some((_, oldest)) = self.resumable.pop_first() else { return };
            let block = self.blocks.get_mut(&oldest).expect("resume points are blocks");
            let windows = std::mem::take(&mut block.windows);
            self.let_go(&windows);
            self.counts.evicted_resume_points += 1;
        }
    }

    /// Gives up `pages` pages that nobody reads, or as many as there are; returns how many.
    pub fn evict(&mut self, pages: u64) -> u64 {
        let mut evicted = 0;
        // Ends of chains that are read are passed over once.
        let mut passed = self.leaves.len();
        while evicted < pages && passed > 0 {
            let Some((_, id)) = self.leaves.first().copied() else { break };
            if self.blocks[&id].lease.strong_count() > 0 {
                self.touch(id);
                passed -= 1;
                continue;
            }
            self.remove(id);
            evicted += 1;
        }
        self.counts.evicted_pages += evicted;
        evicted
    }

    /// Pages that nobody reads: as good as free.
    pub fn idle_pages(&self) -> u64 {
        self.idle.count()
    }

    /// Changes whenever something is found or added.
    pub(super) fn uses(&self) -> u64 {
        self.uses
    }

    /// Resume points at most.
    pub(super) fn most_resume_points(&self) -> usize {
        self.resume_points
    }

    /// Blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Window pages that resume points hold, whether or not a sequence reads them too.
    pub fn held_windows(&self) -> u64 {
        self.held_windows.len() as u64
    }

    /// Resume points.
    pub fn resume_points(&self) -> usize {
        self.resumable.len()
    }

    /// Counts since the start.
    pub fn counts(&self) -> PrefixCounts {
        self.counts
    }

    /// Pages of compressed entries.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.blocks.values().map(|block| &*block.page)
    }

    /// Pages of window entries, some of them more than once.
    pub fn window_pages(&self) -> impl Iterator<Item = &Page> {
        self.blocks.values().flat_map(|block| block.windows.iter().map(|page| &**page))
    }

    /// Whether its counts and chains hold.
    ///
    /// # Errors
    /// Names what does not.
    pub fn check(&self) -> Result<(), String> {
        let idle = self.blocks.values().filter(|block| block.lease.strong_count() == 0).count();
        if idle as u64 != self.idle_pages() {
            return Err(format!("prefix cache: {} idle pages, not {idle}", self.idle_pages()));
        }
        let windows: HashSet<_> = self.window_pages().map(Page::id).collect();
        if windows.len() != self.held_windows.len() {
            let (held, counted) = (windows.len(), self.held_windows.len());
            return Err(format!("prefix cache: {held} window pages are held, not {counted}"));
        }
        let mut followed: HashMap<BlockId, u64> = HashMap::new();
        for before in self.blocks.values().filter_map(|block| block.before) {
            *followed.entry(before).or_default() += 1;
        }
        for (id, block) in &self.blocks {
            let following = followed.get(id).copied().unwrap_or(0);
            let leaf = self.leaves.contains(&(block.used, *id));
            let resumes = self.resumable.contains(&(block.resumed, *id));
            let orphan = block.before.is_some_and(|before| !self.blocks.contains_key(&before));
            if following != block.following
                || leaf != (following == 0)
                || resumes == block.windows.is_empty()
                || orphan
            {
                return Err(format!("prefix cache: block {} is not where it belongs", id.0));
            }
        }
        Ok(())
    }

    fn equal(&self, hash: u64, before: Option<BlockId>, content: &PrefixBlock) -> Option<BlockId> {
        let same = |id: &&BlockId| {
            let block = &self.blocks[*id];
            block.before == before && block.content == *content
        };
        self.by_hash.get(&hash)?.iter().find(same).copied()
    }

    fn lease(&mut self, id: BlockId) -> Arc<Lease> {
        let block = self.blocks.get_mut(&id).expect("a block that was found is there");
        block.lease.upgrade().unwrap_or_else(|| {
            let lease = Arc::new(Lease::new(Arc::clone(&block.page), self.idle.clone()));
            block.lease = Arc::downgrade(&lease);
            lease
        })
    }

    /// Window pages that one resume point fewer holds.
    fn let_go(&mut self, windows: &[Arc<Page>]) {
        for page in windows {
            let held =
                self.held_windows.get_mut(&page.id()).expect("a page that is held is counted");
            *held -= 1;
            if *held == 0 {
                self.held_windows.remove(&page.id());
            }
        }
    }

    fn touch(&mut self, id: BlockId) {
        self.uses += 1;
        let block = self.blocks.get_mut(&id).expect("a block that was found is there");
        if self.leaves.remove(&(block.used, id)) {
            self.leaves.insert((self.uses, id));
        }
        block.used = self.uses;
    }

    fn remove(&mut self, id: BlockId) {
        let block = self.blocks.remove(&id).expect("a leaf is a block");
        self.leaves.remove(&(block.used, id));
        self.resumable.remove(&(block.resumed, id));
        self.let_go(&block.windows);
        if let Some(same) = self.by_hash.get_mut(&block.hash) {
            same.retain(|other| *other != id);
            if same.is_empty() {
                self.by_hash.remove(&block.hash);
            }
        }
        if let Some(before) = block.before {
            let left = self.blocks.get_mut(&before).expect("a chain goes from its end");
            left.following -= 1;
            if left.following == 0 {
                self.leaves.insert((left.used, before));
            }
        }
        self.idle.add(-1);
    }
}
