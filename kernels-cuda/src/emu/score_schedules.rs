//! The tiles of `index.scores` under many schedules, whole and with one of its waits left out at a time. The kernel is
//! launched with one part, so that its ring goes round.

use super::host::{OnHost, leaving_out, sites};
use crate::{
    driver::{Argument, EntryArgument, Shape, ViewArgument},
    launcher::Target,
};
use tandem_hal::Result;

/// Launches of a case: each has another schedule.
const SCHEDULES: usize = 12;

/// Launches within which a wait that is left out has to matter.
const PATIENCE: usize = 60;
/// Keys of more tiles than a ring has, and of a page.
const ENTRIES: u64 = 27 * 64;
const PAGE: u64 = 32;
const KEY_BYTES: u64 = 68;

const ONE: &str = "index_scores__tiles_1";
const FOUR: &str = "index_scores__tiles_4";

/// Bytes from a seed.
fn bytes(count: u64, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..count).map(next).collect()
}

/// The address of data.
fn at<T>(data: &[T]) -> u64 {
    data.as_ptr().expose_provenance() as u64
}

/// Rows of one sequence against its keys.
struct Case {
    rows: u64,
    kernel: &'static str,
    q: Vec<u8>,
    scales: Vec<u8>,
    weight: Vec<u8>,
    keys: Vec<u8>,
}

impl Case {
    fn new(rows: u64, kernel: &'static str) -> Case {
        let scale = |byte: u8| 120 + byte % 3;
        let mut keys = bytes(ENTRIES * KEY_BYTES + 16, 1);
        // The vector's own place may not be a multiple of 16.
        let first = keys.as_ptr().align_offset(16);
        for (i, key) in keys[first..].chunks_exact_mut(KEY_BYTES as usize).enumerate() {
            key[64..].iter_mut().for_each(|byte| *byte = scale(*byte));
            // One that whole numbers do not hold, and one that is computed plainly.
            key[64] = if i == 900 { 110 } else { key[64] };
            key[65] = if i == 1500 { 255 } else { key[65] };
        }
        let weight = bytes(rows * 32, 3).iter().flat_map(|byte| [*byte, 0x3F]).collect();
        let scales = bytes(rows * 32 * 4, 4).into_iter().map(scale).collect();
        Case { rows, kernel, q: bytes(rows * 32 * 64, 2), scales, weight, keys }
    }

    /// The scores of one launch.
    fn run(&self) -> Result<Vec<u8>> {
        let mut y = vec![0u8; (self.rows * ENTRIES * 4) as usize];
        let pages: Vec<u32> = (0..(ENTRIES / PAGE) as u32).rev().collect();
        let (sequence, visible) =
            (vec![0u32; self.rows as usize], vec![ENTRIES as u32 - 70; self.rows as usize]);
        let first = self.keys.as_ptr().align_offset(16);
        let view = |codes, scales, stride| Argument::View(ViewArgument { codes, scales, stride });
        let entry = EntryArgument {
            form: 0,
            rule: 1,
            block: 32,
            width: 128,
            bytes: KEY_BYTES,
            page_entries: PAGE as u32,
            entries: ENTRIES,
        };
        let arguments = [
            view(at(&self.q), at(&self.scales), 32 * 128),
            view(at(&self.weight), 0, 32),
            view(at(&self.keys[first..]), 0, PAGE),
            view(at(&sequence), 0, self.rows),
            view(at(&pages), 0, ENTRIES / PAGE),
            view(at(&visible), 0, self.rows),
            view(y.as_mut_ptr().expose_provenance() as u64, 0, ENTRIES),
            Argument::Entry(entry),
            Argument::U64(1),
            Argument::U64(ENTRIES / PAGE),
            Argument::U32(32),
            Argument::F32(0.02),
            Argument::U32(ENTRIES as u32),
            Argument::U32(self.rows as u32),
            Argument::U32(1),
            Argument::U32(1),
            Argument::U32(1),
        ];
        let (tiles, slots, rows) = if self.kernel == ONE { (3, 24, 1) } else { (8, 12, 4) };
        let shared_bytes =
            (tiles * 4096 + slots * (64 * KEY_BYTES + 32) + rows * 144 + 1028) as u32;
        let shape = Shape { shared_bytes, ..Shape::flat(self.rows as u32, 640) };
        OnHost.launch(self.kernel, &shape, &arguments)?;
        Ok(y)
    }
}

#[test]
fn tiles_of_scores_need_each_of_their_waits() {
    let cases = [Case::new(1, ONE), Case::new(4, FOUR)];
    let whole = cases.each_ref().map(|case| case.run().unwrap());
    // What a row scores does not depend on how many are taken together.
    let row = |y: &[u8]| y[..(ENTRIES * 4) as usize].to_vec();
    let mut first = Case::new(4, FOUR);
    first.rows = 1;
    assert_eq!(Case { kernel: ONE, ..first }.run().unwrap(), row(&whole[1]));
    for _ in 0..SCHEDULES {
        assert_eq!(cases.each_ref().map(|case| case.run().unwrap()), whole);
    }
    // Threads meet before the first meeting of the block matters, plain stores are not told from copies before products,
    // and products that nobody waits for would be written where their thread is no more: these are not left out.
    let known = ["barrier_init_fence", "barrier_wait", "mma_fence"];
    let of_kernel = [sites("scores_sm90.cu"), sites("fp4_scores.cuh")].concat();
    let all: Vec<String> = of_kernel
        .into_iter()
        .filter(|site| known.iter().any(|kind| site.starts_with(kind)))
        .collect();
    assert!(all.len() >= 5, "{all:?}");
    let differs =
        || cases.iter().zip(&whole).any(|(case, whole)| case.run().map_or(true, |y| &y != whole));
    let is_caught = || (0..PATIENCE).any(|_| differs());
    let missed: Vec<&String> = all.iter().filter(|site| !leaving_out(site, is_caught)).collect();
    assert!(missed.is_empty(), "left out without a difference: {missed:?}");
}
