//! A runner that may write nothing but what its live rows store.

use std::cell::RefCell;

use tandem_engine::Result;
use tandem_engine::exec::{
    DraftLists, Drafter, Forward, Geometry, RowLists, Sample, Sampled, StepLists,
};
use tandem_engine::kv::Snapshot;

use super::live::{self, CacheBytes};
use super::witness::Witness;

/// The size of a step and how it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    pub live_rows: usize,
    pub rows: usize,
    pub captured: bool,
}

/// Checks every record of every cache after every step and every draft.
pub struct Guarded {
    pub witness: Witness,
    pub steps: Vec<Ran>,
    caches: RefCell<CacheBytes>,
}

impl Guarded {
    pub fn new(witness: Witness) -> Self {
        let network = witness.runner.network();
        let caches = CacheBytes::read(&network.resident, witness.runner.stream());
        Self { witness, steps: Vec::new(), caches: RefCell::new(caches) }
    }

    /// Puts a pattern into every record, to be called while no sequence has any.
    pub fn put_guards(&self) {
        let (runner, model) = (&self.witness.runner, &self.witness.runner.network().resident);
        live::fill(model, runner.stream());
        *self.caches.borrow_mut() = CacheBytes::read(model, runner.stream());
    }

    /// Every record is as it was, but for those `written`, of which some are not.
    fn check(&self, written: &Snapshot) {
        let (runner, model) = (&self.witness.runner, &self.witness.runner.network().resident);
        let now = CacheBytes::read(model, runner.stream());
        let before = self.caches.replace(now);
        let (own, strays) = self.caches.borrow().changed(&before, written);
        assert!(strays.is_empty(), "rows that are not theirs were written: {strays:?}");
        assert!(own > 0, "nothing was written");
    }
}

impl Forward for Guarded {
    fn geometry(&self) -> &Geometry {
        self.witness.geometry()
    }
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        let live_rows = lists.rows.position.iter().filter(|position| **position >= 0).count();
        check_padding(lists, live_rows);
        let replays = self.witness.runner.replays();
        let sampled = self.witness.step(lists, samples)?;
        let captured = self.witness.runner.replays() > replays;
        self.steps.push(Ran { live_rows, rows: lists.rows.tokens() as usize, captured });
        self.check(&stores(&lists.rows, live_rows));
        Ok(sampled)
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        let drafts = self.witness.draft(lists, drafters)?;
        let mut written = Snapshot::default();
        for (row, address) in lists.window_store.iter().enumerate() {
            if row % (lists.sequences as usize) < drafters.len() {
                written.window.push((0, *address));
            } else {
                assert_eq!((lists.position[row], *address), (-1, -1), "padding");
            }
        }
        self.check(&written);
        Ok(drafts)
    }
}

/// Where the first rows store.
fn stores(rows: &RowLists, count: usize) -> Snapshot {
    let of = |list: &[i32]| list[..count].iter().map(|address| (0, *address)).collect();
    Snapshot {
        window: of(&rows.window_store),
        open: of(&rows.open_store),
        ratio1: of(&rows.store[0]),
        ratio2: of(&rows.store[1]),
    }
}

/// Rows after the live ones have length 0 and no slot, and no output or table row is theirs.
fn check_padding(lists: &StepLists, live_rows: usize) {
    let rows = &lists.rows;
    let [ratio1, ratio2] = &rows.store;
    for list in [&rows.position, &rows.window_store, &rows.open_store, ratio1, ratio2] {
        assert!(list[live_rows..].iter().all(|slot| *slot == -1), "a slot of padding: {list:?}");
    }
    for list in &rows.visible {
        assert!(list[live_rows..].iter().all(|length| *length == 0), "a length: {list:?}");
    }
    assert!(rows.output_at.iter().all(|row| *row < live_rows as i32), "{:?}", rows.output_at);
    let sequences = rows.sequence.iter().max().map_or(0, |last| *last as u64 + 1);
    let table = &lists.table[(sequences * lists.table_pages) as usize..];
    assert!(table.iter().all(|page| *page == -1), "a page of padding: {table:?}");
}
