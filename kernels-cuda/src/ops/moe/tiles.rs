//! Launches of kernels that make tiles of routed experts' outputs by Hopper's matrix units: see
//! `expert_tiles.cuh`. One launch sorts the rows of data by expert, the next multiplies them.

use crate::driver::{Argument, Shape, TensorMap, Tile, ViewArgument};
use crate::ops::prelude::*;
use std::ops::Range;
use tandem_hal::{DeviceInfo, Experts, Extents, Needs, Operator};
use tandem_portable::ops::moe::experts;

/// The bits of all of them, and those of fused operators over them.
pub(super) const STAGES: &str = "bf16-stages";
pub(super) const UP_STAGES: &str = "steps moe.gate_up=bf16-stages";
pub(super) const DOWN_STAGES: &str = "steps moe.down=bf16-stages";

/// Rows of a tile of weights, half of them in a box.
const ROWS: u64 = 64;
/// Columns of a stage, its bytes of a row of a weight, and those of a row of data.
const COLUMNS: u64 = 256;
const ROW_BYTES: u64 = COLUMNS / 2;
const X_BYTES: u64 = COLUMNS * 2;
/// Threads that multiply together, those that sort, and those of a block that brings rows.
const GANG: u64 = 128;
const SORTERS: u32 = 1024;
const ROW_THREADS: u64 = 256;
/// Blocks of a multiprocessor that bring rows.
const ROW_BLOCKS: u64 = 8;
/// Rows of data in a launch at most: scratch holds all of them.
const MOST_TOKENS: u64 = 4096;
/// Slots of a row at most, which the lanes of a warp take.
const MOST_SLOTS: u64 = 32;
/// Experts here at most: a thread counts the rows of each.
const MOST_EXPERTS: u64 = 1024;
/// Bytes of a group of rows, of a row's place, and of a word.
const GROUP: u64 = 16;
const PLACE: u64 = 8;
const WORD: u64 = 4;

/// How a kernel tiles, as its source has it.
struct Form {
    /// Its name behind that of the operator.
    name: &'static str,
    /// Rows of data.
    tokens: u64,
    /// Gangs, each of which takes a tile of the weight.
    gangs: u64,
    /// Stages of the ring.
    slots: u64,
}

static FORMS: [Form; 5] = [
    Form { name: "grouped_8", tokens: 8, gangs: 4, slots: 4 },
    Form { name: "grouped_16", tokens: 16, gangs: 4, slots: 4 },
    Form { name: "grouped_32", tokens: 32, gangs: 4, slots: 4 },
    Form { name: "grouped_48", tokens: 48, gangs: 3, slots: 4 },
    Form { name: "grouped_80", tokens: 80, gangs: 3, slots: 3 },
];

impl Form {
    /// The one for as many rows of data as an expert may expect. Measured; an expert with more rows
    /// takes several passes, each with the weight once.
    fn of(expected: u64) -> &'static Form {
        &FORMS[match expected {
            0..=4 => 0,
            5..=9 => 1,
            10..=23 => 2,
            24..=40 => 3,
            _ => 4,
        }]
    }
    fn shape(&self, blocks: u64, local: u64) -> Shape {
        let stage = self.gangs * ROWS * (ROW_BYTES + COLUMNS / 32) + self.tokens * X_BYTES;
        // Pairs of two items, and what gangs exchange.
        let exchange = self.gangs * 6 * self.tokens * WORD;
        Shape {
            grid: [blocks as u32, 1, 1],
            block: [((self.gangs + 1) * GANG) as u32, 1, 1],
            shared_bytes: (self.slots * (stage + 16) + exchange + (local + 1) * GROUP) as u32,
            cluster: None,
            programmatic: true,
        }
    }
}

/// A row of an operator over routed experts.
pub(super) const fn grouped<D: Operator>(
    image: &'static str,
    bits: &'static str,
    run: fn(&D, &Arguments<D>, &Launcher<'_>) -> Result<()>,
    accepts: fn(&D, &DeviceInfo) -> std::result::Result<(), &'static str>,
    suits: fn(&D) -> bool,
    needs: fn(&D, &Extents) -> Needs,
) -> Row<D, Launch<D>> {
    Row { suits, needs, ..hopper("grouped", bits, image, run, accepts) }
}

/// Codes of a weight from which sorting the pairs pays: experts of 256 x 64 were faster without, those of 5120 x 2304 by far
/// with it; between the two nothing was measured.
const LEAST_CODES: u64 = 1 << 20;

/// Whether experts are large enough for them.
pub(super) fn suits(d: &Experts) -> bool {
    d.hidden.saturating_mul(d.inter) >= LEAST_CODES
}

/// What is too large for them.
pub(super) fn accepts(d: &Experts) -> std::result::Result<(), &'static str> {
    if d.top_k > MOST_SLOTS || d.local > MOST_EXPERTS {
        return Err("more experts than a block counts");
    }
    // Coordinates of the copy engine.
    if d.local.saturating_mul(d.inter.max(d.hidden)) > i32::MAX as u64 {
        return Err("more outputs than the copy engine counts");
    }
    Ok(())
}

/// Rows of data of each launch.
pub(super) fn launches(tokens: u64) -> impl Iterator<Item = Range<u64>> {
    let starts = (0..tokens).step_by(MOST_TOKENS as usize);
    starts.map(move |first| first..tokens.min(first + MOST_TOKENS))
}

/// An operand from row `first` on, of so many bytes a unit and scales a row.
pub(super) fn from(view: ViewArgument, first: u64, bytes: u64, scales: u64) -> ViewArgument {
    let (codes, scales) = (first * view.stride * bytes, first * scales);
    ViewArgument { codes: view.codes + codes, scales: view.scales + scales, ..view }
}

/// Scratch of a launch: the sorted rows of `columns`, then `rest` bytes for each pair of a row and a
/// slot.
pub(super) struct Scratch {
    images: u64,
    rest: u64,
    bytes: u64,
}

impl Scratch {
    pub(super) fn of(d: &Experts, columns: u64, tokens: u64, rest: u64) -> Scratch {
        let aligned = |bytes: u64| bytes.saturating_add(1023) / 1024 * 1024;
        let pairs = tokens.min(MOST_TOKENS).saturating_mul(d.top_k);
        // Each expert's rows begin at a multiple of 8.
        let rows = pairs + 7 * d.local.min(pairs);
        let images = aligned((d.local + 1) * GROUP + rows * PLACE);
        let row = columns.div_ceil(COLUMNS).saturating_mul(X_BYTES);
        let end = aligned(images.saturating_add(rows.saturating_mul(row)));
        Scratch { images, rest: end, bytes: end.saturating_add(pairs.saturating_mul(rest)) }
    }
    pub(super) fn needs(&self) -> Needs {
        Needs { workspace_bytes: self.bytes }
    }
    /// The rows, as kernels get them.
    pub(super) fn rows(&self, on: &Launcher<'_>) -> ViewArgument {
        let codes = on.workspace.codes;
        ViewArgument { codes, scales: codes + self.images, stride: 0 }
    }
    /// What is behind them.
    pub(super) fn rest(&self, on: &Launcher<'_>) -> ViewArgument {
        ViewArgument { codes: on.workspace.codes + self.rest, ..ViewArgument::default() }
    }
}

/// Launches over `tokens` rows of `columns`.
pub(super) struct Tiles<'a> {
    on: &'a Launcher<'a>,
    d: &'a Experts,
    columns: u64,
    tokens: u64,
    form: &'static Form,
}

impl<'a> Tiles<'a> {
    pub(super) fn of(on: &'a Launcher<'a>, d: &'a Experts, columns: u64, tokens: u64) -> Self {
        Tiles { on, d, columns, tokens, form: Form::of(tokens * d.top_k / d.total) }
    }

    /// Sorts the rows of `views`, and brings them by the kernels of an operator.
    pub(super) fn sort(
        &self,
        operator: &str,
        expert: Argument<'static>,
        rows: Argument<'static>,
        views: &[Argument<'static>],
    ) -> Result<()> {
        let d = self.d;
        let flat = |blocks: u64, threads| Shape {
            programmatic: true,
            ..Shape::flat(blocks as u32, threads)
        };
        let rest = [U64(self.tokens), U32(self.form.tokens as u32)];
        let arguments = experts::arguments(&[expert, rows], d, &rest);
        self.on.launch(&format!("{operator}__sort"), &flat(1, SORTERS), &arguments)?;
        // Eight threads for a stage of a row, and enough warps for rows that go nowhere here.
        let threads = self.tokens * d.top_k * self.columns.div_ceil(COLUMNS) * 8;
        let most = self.on.multiprocessors()? * ROW_BLOCKS;
        let shape = flat(threads.div_ceil(ROW_THREADS).min(most), ROW_THREADS as u32);
        let arguments = experts::arguments(views, d, &[U64(self.tokens)]);
        self.on.launch(&format!("{operator}__rows"), &shape, &arguments)
    }

    /// Multiplies them by `weights`, of `rows` for each expert, by the kernels of an operator. A tile has
    /// rows of one weight or of both.
    pub(super) fn multiply(
        &self,
        operator: &str,
        weights: &[ViewArgument],
        rows: u64,
        views: &[Argument<'static>],
        rest: &[Argument<'static>],
    ) -> Result<()> {
        let (d, form) = (self.d, self.form);
        let maps: Vec<TensorMap> = weights
            .iter()
            .map(|weight| {
                let cols = self.columns / 2;
                let (rows, box_rows) = (d.local * rows, ROWS as u32 / 2);
                let box_cols = ROW_BYTES as u32;
                let tile = Tile { rows, cols, pitch: cols, box_rows, box_cols, swizzled: true };
                self.on.tensor_map(weight.codes, &tile)
            })
            .collect::<Result<_>>()?;
        let pairs = self.tokens * d.top_k;
        let passes = pairs.min(d.local + pairs / form.tokens);
        let tiles = passes * rows.div_ceil(ROWS / weights.len() as u64);
        let blocks = tiles.min(self.on.multiprocessors()?);
        let maps: Vec<Argument<'_>> = maps.iter().map(TensorMap::argument).collect();
        let plain = experts::arguments(views, d, rest);
        let arguments = [&maps[..], &plain].concat();
        self.on.launch(
            &format!("{operator}__{}", form.name),
            &form.shape(blocks, d.local),
            &arguments,
        )
    }
}
