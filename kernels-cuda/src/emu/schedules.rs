//! Tuned kernels under many schedules, whole and with one wait or fence left out at a time.

use super::host::{OnHost, leaving_out, sites};
use crate::{
    driver::ViewArgument,
    launcher::Launcher,
    rows::{self, Rows},
};
use std::path::Path;
use tandem_hal::{ExpertUp, Experts, Extents, Mxfp8Linear, Operator, Real, Result, Sym};

/// Launches of a case: each has another schedule.
const SCHEDULES: usize = 12;

/// Launches of a case within which a wait that is left out has to matter. Where one matters in one launch of twenty, twelve
/// launches of four cases would miss it one time in twelve.
const PATIENCE: usize = 60;

/// A launch's operands as bytes: codes and scales of each, and which one is the output.
pub(super) struct Case<'a, D: Operator> {
    pub(super) descriptor: &'a D,
    pub(super) row: &'a str,
    pub(super) extents: Extents,
    pub(super) operands: Vec<(Vec<u8>, Vec<u8>, u64)>,
    pub(super) output: usize,
}

impl<D: Rows> Case<'_, D> {
    /// The output of one launch.
    fn run(&self) -> Result<Vec<u8>> {
        let mut operands = self.operands.clone();
        let arguments: Vec<ViewArgument> = operands
            .iter_mut()
            .map(|(codes, scales, stride)| ViewArgument {
                codes: codes.as_mut_ptr().expose_provenance() as u64,
                scales: scales.as_mut_ptr().expose_provenance() as u64,
                stride: *stride,
            })
            .collect();
        let row = D::rows().iter().find(|row| row.name == self.row).expect("the row under test");
        let (target, extents) = (&OnHost, &self.extents);
        let bytes = (row.needs)(self.descriptor, extents).workspace_bytes;
        // Aligned as a reservation is.
        let mut scratch = vec![u128::MAX; bytes.div_ceil(16) as usize];
        let codes = scratch.as_mut_ptr().expose_provenance() as u64;
        let on =
            Launcher { target, extents, workspace: ViewArgument { codes, ..Default::default() } };
        rows::launch(self.descriptor, row, arguments.into_iter(), &on)?;
        Ok(operands.swap_remove(self.output).0)
    }
}

/// Those of `sites` that can be left out without a case's giving another output than `whole`, or an error.
fn missed<'a, D: Rows>(
    cases: &[Case<'_, D>],
    whole: &[Vec<u8>],
    sites: impl Iterator<Item = &'a String>,
) -> Vec<&'a String> {
    let differs = |(case, whole): (&Case<'_, D>, &Vec<u8>)| {
        case.run().map_or(true, |output| &output != whole)
    };
    let is_caught = || (0..PATIENCE).any(|_| cases.iter().zip(whole).any(differs));
    sites.filter(|site| !leaving_out(site, is_caught)).collect()
}

/// Numbers without NaN, from a seed.
pub(super) fn codes(count: u64, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..count)
        .map(|_| next())
        .map(|code| if code & 0x7F == 0x7F { code ^ 8 } else { code })
        .collect()
}

/// `gemm.mxfp8` on a tuned row, with the scales of x and of the weight.
fn linear(
    row: &'static str,
    (descriptor, tokens): (&'static Mxfp8Linear, u64),
    x_scale: impl Fn(u64) -> u8,
    weight_scale: impl Fn(u64) -> u8,
) -> Case<'static, Mxfp8Linear> {
    let (n, k) = (descriptor.n, descriptor.k);
    Case {
        descriptor,
        row,
        extents: Extents::of(&[(Sym::Tokens, tokens)]),
        operands: vec![
            (codes(tokens * k, 1), (0..tokens * k / 32).map(x_scale).collect(), k),
            (codes(n * k, 2), (0..n.div_ceil(32) * k / 32).map(weight_scale).collect(), k),
            (vec![0; (tokens * n * 2) as usize], vec![], n),
        ],
        output: 2,
    }
}

fn tame(i: u64) -> u8 {
    120 + (i % 7) as u8
}

/// Scales that numbers of f16 hold; those that they do not beside each other, in all rows of x; too large a one in a tile of
/// the weight; and in one row of x.
fn linears(row: &'static str, at: (&'static Mxfp8Linear, u64)) -> [Case<'static, Mxfp8Linear>; 4] {
    // Large ones at both ends of a row of 17, so that it matters that all are seen, over zeros, beside which the others count.
    let is_large = |block: u64| matches!(block % 17, 0 | 16);
    let mut apart = linear(row, at, |i| if is_large(i) { 130 } else { 90 }, tame);
    let blocks = apart.operands[0].0.chunks_mut(32).zip(0..);
    blocks.filter(|(_, i)| is_large(*i)).for_each(|(block, _)| block.fill(0));
    [
        linear(row, at, tame, tame),
        apart,
        linear(row, at, tame, |i| if i == 37 { 200 } else { tame(i) }),
        linear(row, at, |i| if i == 37 { 200 } else { tame(i) }, tame),
    ]
}

/// That cases give the same bits under all schedules, and that what `files` wait for is needed.
pub(super) fn every_wait_is_needed<D: Rows>(
    cases: &[Case<'_, D>],
    files: &[&str],
    sites_at_least: usize,
) {
    let whole: Vec<_> = cases.iter().map(|case| case.run().unwrap()).collect();
    for _ in 0..SCHEDULES {
        for (i, (case, whole)) in cases.iter().zip(&whole).enumerate() {
            assert!(&case.run().unwrap() == whole, "case {i} depends on the schedule");
        }
    }
    let all: Vec<String> = files.iter().flat_map(|file| sites(file)).collect();
    assert!(all.len() >= sites_at_least, "{all:?}");
    let left_out = all
        .iter()
        // That registers of products under way are left alone is the compiler's care; the emulator reads them at once.
        .filter(|site| !text_of(site).contains("mma_wait<1>"))
        // Units of a part are there long before they are read; few schedules hold a warp back for so long.
        .filter(|site| !text_of(site).contains("some_sync(1 + gang, GANG)"));
    let missed = missed(cases, &whole, left_out);
    assert!(missed.is_empty(), "left out without a difference: {missed:?}");
}

#[test]
fn the_narrow_linear_needs_each_of_its_waits() {
    // Four parts, one of them longer; six tiles for four gangs; a ragged last tile and stage.
    const LINEAR: Mxfp8Linear = Mxfp8Linear { n: 330, k: 1056 };
    let files = ["mxfp8_narrow_sm90.cu", "narrow_tiles.cuh", "f16_blocks.cuh"];
    every_wait_is_needed(&linears("narrow", (&LINEAR, 9)), &files, 12);
}

#[test]
fn the_wide_linear_needs_each_of_its_waits() {
    // Two parts, of more stages than the rings have slots, and two tiles of tokens; a ragged last tile and stage.
    const LINEAR: Mxfp8Linear = Mxfp8Linear { n: 140, k: 544 };
    every_wait_is_needed(&linears("wide", (&LINEAR, 130)), &["mxfp8_wide_sm90.cu"], 12);
}

/// The line of a source that a site names as `WHAT FILE:LINE`.
fn text_of(site: &str) -> String {
    let place = site.rsplit(' ').next().and_then(|place| place.split_once(':'));
    let (file, line) = place.expect("sites have a file and a line");
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let text = ["attn", "device", "gemm", "moe"]
        .iter()
        .find_map(|folder| std::fs::read_to_string(kernels.join(folder).join(file)).ok())
        .expect("the source of a site");
    text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap_or_default().to_owned()
}

/// `moe.expert_up` on its tuned row, for rows that go to two of four experts, with scales from `scale`.
fn expert_up(
    tokens: u64,
    hidden: u64,
    inter: u64,
    scale: impl Fn(u64) -> u8,
) -> Case<'static, ExpertUp> {
    let (total, local, top_k) = (4, 4, 2);
    let experts = Experts { total, first: 0, local, top_k, hidden, inter };
    let scales = |count| (0..count).map(&scale).collect::<Vec<u8>>();
    let words = |words: Vec<u32>| words.into_iter().flat_map(u32::to_ne_bytes).collect::<Vec<u8>>();
    let expert = (0..tokens * top_k).map(|i| (i % 4) as u32).collect();
    let weight = (0..tokens * top_k).map(|i| (0.5 + i as f32 / 16.0).to_bits()).collect();
    let matrix = |seed| {
        let count = local * inter * hidden;
        (codes(count / 2, seed), scales(count / 32), hidden)
    };
    let y = vec![0; (tokens * top_k * inter) as usize];
    let y_scales = vec![0; (tokens * top_k * inter / 32) as usize];
    Case {
        descriptor: Box::leak(Box::new(ExpertUp { experts, limit: Real::new(10.0) })),
        row: "grouped",
        extents: Extents::of(&[(Sym::Tokens, tokens)]),
        operands: vec![
            (codes(tokens * hidden, 1), scales(tokens * hidden / 32), hidden),
            (words(expert), vec![], top_k),
            (words(weight), vec![], top_k),
            matrix(2),
            matrix(3),
            (y, y_scales, top_k * inter),
        ],
        output: 5,
    }
}

#[test]
fn the_tuned_experts_need_each_of_their_waits() {
    let near = |i: u64| 120 + (i % 7) as u8;
    // More stages than the ring has, with few rows of data and with more; less, with many tiles, so that gangs' warps drift
    // apart; and scales whose products are made the slow way.
    let cases = [
        expert_up(3, 1312, 64, near),
        expert_up(23, 1184, 64, near),
        expert_up(7, 64, 768, near),
        expert_up(5, 64, 64, |i| if i % 2 == 0 { 30 } else { 200 }),
    ];
    let whole = cases.each_ref().map(|case| case.run().unwrap());
    for _ in 0..SCHEDULES / 3 {
        assert_eq!(cases.each_ref().map(|case| case.run().unwrap()), whole);
    }
    let all: Vec<String> =
        ["expert_tiles.cuh", "expert_up_sm90.cu"].into_iter().flat_map(sites).collect();
    assert!(all.len() >= 9, "{all:?}");
    // That registers of products under way are left alone is the compiler's care; the emulator reads them at once.
    let left_out = all.iter().filter(|site| !text_of(site).contains("mma_wait<1>"));
    let missed = missed(&cases, &whole, left_out);
    assert!(missed.is_empty(), "left out without a difference: {missed:?}");
}
