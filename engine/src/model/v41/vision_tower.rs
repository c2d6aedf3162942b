//! The picture tower: patches to rows of the width of the text model.
//!
//! Full attention within one picture, rotary positions in two dimensions, then cells of patches
//! merged and projected. One picture at a time.

use tandem_hal::{
    AddRows, AddRowsIo, Bf16Linear, Bf16LinearIo, DenseAttention, DenseAttentionIo, Device, Enc,
    Extents, GatedSilu, GatedSiluIo, Gelu, GeluIo, Lane, PlaceRows, PlaceRowsIo, Plan, Real,
    RmsNorm, RmsNormIo, RotateHalves, RotateHalvesIo, Sym, Unfold, UnfoldIo, View,
};

use super::config::Config;
use super::plans::Plans;
pub use super::vision_sizes::picture_limits;
use super::vision_sizes::{Sizes, vision};
pub use super::vision_weights::TowerWeights;
use super::vision_weights::{Biased, BlockWeights};
use crate::error::{Error, Result};
use crate::vision::{Span, SpanKind};
use crate::weights::Room;

/// The tower's norms have an epsilon of their own; it is in no configuration.
const NORM_EPS: f32 = 1e-6;

/// Buffers of the tower, for the largest picture.
struct Scratch {
    patches: View,
    x: View,
    normed: View,
    qkv: View,
    attended: View,
    projected: View,
    both: View,
    unit: View,
    merged: View,
    hidden: View,
    gelu: View,
    cells: View,
    row: View,
    column: View,
    members: View,
    cell_at: View,
    marker_at: [View; 3],
    workspace: View,
}

impl Scratch {
    fn reserve(room: &mut Room<'_>, v: &Sizes, workspace_bytes: u64) -> Result<Self> {
        let (n, c, t) = (v.patches(), v.cells(), v.tokens);
        let mut rows = |rows, cols| room.view(Enc::BF16, &[rows, cols]);
        let (patches, x, normed) = (rows(n, v.pixels)?, rows(n, v.width)?, rows(n, v.width)?);
        let (qkv, attended) = (rows(n, 3 * v.width)?, rows(n, v.width)?);
        let (projected, both, unit) = (rows(n, v.width)?, rows(n, 2 * v.inter)?, rows(n, v.inter)?);
        let (merged, hidden) = (rows(c, v.merged())?, rows(c, v.hidden)?);
        let (gelu, cells) = (rows(c, v.hidden)?, rows(c, v.hidden)?);
        let mut list = || room.view(Enc::I32, &[t]);
        let (cell_at, marker_at) = (list()?, [list()?, list()?, list()?]);
        Ok(Self {
            row: room.view(Enc::I32, &[n])?,
            column: room.view(Enc::I32, &[n])?,
            members: room.view(Enc::I32, &[c, v.side * v.side])?,
            workspace: room.view(Enc::U8, &[workspace_bytes])?,
            patches,
            x,
            normed,
            qkv,
            attended,
            projected,
            both,
            unit,
            merged,
            hidden,
            gelu,
            cells,
            cell_at,
            marker_at,
        })
    }
}

/// The planned tower with its weights and buffers.
pub struct Tower {
    sizes: Sizes,
    patch: Plan<Bf16Linear>,
    norm: Plan<RmsNorm>,
    wqkv: Plan<Bf16Linear>,
    rotate: Plan<RotateHalves>,
    attend: Plan<DenseAttention>,
    wo: Plan<Bf16Linear>,
    add: Plan<AddRows>,
    w1: Plan<Bf16Linear>,
    gate: Plan<GatedSilu>,
    w2: Plan<Bf16Linear>,
    unfold: Plan<Unfold>,
    aligner: [Plan<Bf16Linear>; 2],
    gelu: Plan<Gelu>,
    place: Plan<PlaceRows>,
    w: TowerWeights,
    t: Scratch,
}

impl Tower {
    /// Plans for the largest picture, and its buffers.
    ///
    /// # Errors
    /// As [`TowerWeights::load`], or when a kernel or memory is missing.
    pub fn plan(device: &dyn Device, config: &Config, w: TowerWeights) -> Result<Self> {
        let vision = vision(config)?;
        let v = Sizes::of(config, vision);
        let limits = Extents::of(&[
            (Sym::Tokens, v.patches().max(v.tokens)),
            (Sym::Keys, v.patches()),
            (Sym::Cells, v.cells()),
        ]);
        let mut plans = Plans::new(device, limits);
        let head_dim = v.width / v.heads;
        let linear = |n, k, bias| Bf16Linear { n, k, bias };
        let scale = Real::new(1.0 / (head_dim as f32).sqrt());
        let base = Real::new(vision.rope_base as f32);
        let (patch, norm) = (
            plans.plan(linear(v.width, v.pixels, true))?,
            plans.plan(RmsNorm { width: v.width, eps: Real::new(NORM_EPS) })?,
        );
        let (wqkv, rotate, attend, wo) = (
            plans.plan(linear(3 * v.width, v.width, true))?,
            plans.plan(RotateHalves { heads: v.heads, head_dim, base })?,
            plans.plan(DenseAttention { heads: v.heads, head_dim, scale })?,
            plans.plan(linear(v.width, v.width, true))?,
        );
        let (add, w1, gate, w2) = (
            plans.plan(AddRows { width: v.width })?,
            plans.plan(linear(2 * v.inter, v.width, false))?,
            plans.plan(GatedSilu { inter: v.inter })?,
            plans.plan(linear(v.width, v.inter, false))?,
        );
        let unfold = plans.plan(Unfold { width: v.width, side: v.side })?;
        let aligner = [
            plans.plan(linear(v.hidden, v.merged(), true))?,
            plans.plan(linear(v.hidden, v.hidden, true))?,
        ];
        let gelu = plans.plan(Gelu { width: v.hidden })?;
        let place = plans.plan(PlaceRows { width: v.hidden })?;
        let (_, needs, _) = plans.finish();
        let reserve = |room: &mut Room<'_>| Scratch::reserve(room, &v, needs.workspace_bytes);
        let t = Room::reserve(device, "vision.scratch", reserve)?;
        Ok(Self {
            sizes: v,
            patch,
            norm,
            wqkv,
            rotate,
            attend,
            wo,
            add,
            w1,
            gate,
            w2,
            unfold,
            aligner,
            gelu,
            place,
            w,
            t,
        })
    }

    /// The rows of a picture's span, `[span, hidden]` bf16, into `rows`. `patches` are the bytes of
    /// the bf16 patch matrix of a grid of `(patch rows, patch columns)`.
    ///
    /// # Errors
    /// [`Error::Argument`] when the picture is larger than the model reads.
    pub fn forward(
        &self,
        stream: &dyn tandem_hal::Stream,
        (patches, grid): (&[u8], (u32, u32)),
        rows: &View,
    ) -> Result<()> {
        let on = Lane { stream, workspace: &self.t.workspace, side: None };
        let features = self.features(on, patches, grid)?;
        let cells = self.align(on, &features, grid)?;
        self.assemble(on, &cells, grid, rows)
    }

    /// Scratch that a [`Lane`] for the tower needs.
    pub fn workspace(&self) -> &View {
        &self.t.workspace
    }

    /// The positions of a picture of a grid of patches.
    pub fn span(&self, grid: (u32, u32)) -> Span {
        let side = self.sizes.side as u32;
        Span { rows: grid.0.div_ceil(side), columns: grid.1.div_ceil(side) }
    }

    /// The tower alone: `[patches, width]` bf16 features.
    ///
    /// # Errors
    /// As [`Tower::forward`].
    pub fn features(&self, on: Lane<'_>, patches: &[u8], grid: (u32, u32)) -> Result<View> {
        let n = u64::from(grid.0) * u64::from(grid.1);
        if n == 0 || n > self.sizes.patches() {
            let most = self.sizes.patches();
            return Err(Error::argument(
                "picture",
                format!("{n} patches; the model reads 1 to {most}"),
            ));
        }
        let input = self.t.patches.rows(0..n)?;
        on.stream.write(&input, patches)?;
        let place = |of: &dyn Fn(u32, u32) -> u32| -> Vec<u8> {
            let patches = (0..grid.0).flat_map(|r| (0..grid.1).map(move |c| (r, c)));
            patches.flat_map(|(r, c)| (of(r, c) as i32).to_le_bytes()).collect()
        };
        let (row, column) = (self.t.row.rows(0..n)?, self.t.column.rows(0..n)?);
        on.stream.write(&row, &place(&|r, _| r))?;
        on.stream.write(&column, &place(&|_, c| c))?;
        let x = self.t.x.rows(0..n)?;
        let Biased { weight, bias } = &self.w.patch;
        on.run(&self.patch, Bf16LinearIo { x: &input, weight, bias, y: &x })?;
        for block in &self.w.blocks {
            self.attention(on, block, &x, (&row, &column))?;
            self.mlp(on, block, &x)?;
        }
        let normed = self.t.normed.rows(0..n)?;
        on.run(&self.norm, RmsNormIo { x: &x, weight: &self.w.norm, y: &normed })?;
        Ok(normed)
    }

    fn attention(
        &self,
        on: Lane<'_>,
        w: &BlockWeights,
        x: &View,
        (row, column): (&View, &View),
    ) -> Result<()> {
        let (n, width) = (x.shape()[0], self.sizes.width);
        let t = &self.t;
        let (normed, qkv) = (t.normed.rows(0..n)?, t.qkv.rows(0..n)?);
        let (attended, projected) = (t.attended.rows(0..n)?, t.projected.rows(0..n)?);
        on.run(&self.norm, RmsNormIo { x, weight: &w.norm1, y: &normed })?;
        let Biased { weight, bias } = &w.wqkv;
        on.run(&self.wqkv, Bf16LinearIo { x: &normed, weight, bias, y: &qkv })?;
        let part = |i: u64| qkv.cols(i * width..(i + 1) * width);
        let (q, k, v) = (part(0)?, part(1)?, part(2)?);
        on.run(&self.rotate, RotateHalvesIo { x: &q, row, column })?;
        on.run(&self.rotate, RotateHalvesIo { x: &k, row, column })?;
        on.run(&self.attend, DenseAttentionIo { q: &q, k: &k, v: &v, y: &attended })?;
        let Biased { weight, bias } = &w.wo;
        on.run(&self.wo, Bf16LinearIo { x: &attended, weight, bias, y: &projected })?;
        Ok(on.run(&self.add, AddRowsIo { y: &projected, x })?)
    }

    fn mlp(&self, on: Lane<'_>, w: &BlockWeights, x: &View) -> Result<()> {
        let (n, t) = (x.shape()[0], &self.t);
        let (normed, both) = (t.normed.rows(0..n)?, t.both.rows(0..n)?);
        let (unit, projected) = (t.unit.rows(0..n)?, t.projected.rows(0..n)?);
        let bias = &View::absent(Enc::BF16);
        on.run(&self.norm, RmsNormIo { x, weight: &w.norm2, y: &normed })?;
        on.run(&self.w1, Bf16LinearIo { x: &normed, weight: &w.w1, bias, y: &both })?;
        on.run(&self.gate, GatedSiluIo { x: &both, y: &unit })?;
        on.run(&self.w2, Bf16LinearIo { x: &unit, weight: &w.w2, bias, y: &projected })?;
        Ok(on.run(&self.add, AddRowsIo { y: &projected, x })?)
    }

    /// The aligner alone: features of a grid to `[cells, hidden]` bf16.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn align(&self, on: Lane<'_>, features: &View, grid: (u32, u32)) -> Result<View> {
        let side = self.sizes.side as u32;
        let (rows, columns) = (grid.0.div_ceil(side), grid.1.div_ceil(side));
        let c = u64::from(rows) * u64::from(columns);
        let t = &self.t;
        let members = t.members.rows(0..c)?;
        on.stream.write(&members, &cell_members(grid, side))?;
        let (merged, hidden) = (t.merged.rows(0..c)?, t.hidden.rows(0..c)?);
        let (gelu, cells) = (t.gelu.rows(0..c)?, t.cells.rows(0..c)?);
        on.run(&self.unfold, UnfoldIo { x: features, at: &members, y: &merged })?;
        let [w1, w2] = &self.w.aligner;
        let io = Bf16LinearIo { x: &merged, weight: &w1.weight, bias: &w1.bias, y: &hidden };
        on.run(&self.aligner[0], io)?;
        on.run(&self.gelu, GeluIo { x: &hidden, y: &gelu })?;
        let io = Bf16LinearIo { x: &gelu, weight: &w2.weight, bias: &w2.bias, y: &cells };
        on.run(&self.aligner[1], io)?;
        Ok(cells)
    }

    /// Cells and markers in the order of the span.
    fn assemble(&self, on: Lane<'_>, cells: &View, grid: (u32, u32), rows: &View) -> Result<()> {
        let span = self.span(grid);
        let tokens = span.tokens();
        let list = |at: &dyn Fn(u64) -> Option<u64>| -> Vec<u8> {
            let number = |p| at(p).map_or(-1, |i| i as i32);
            (0..tokens).flat_map(|p| number(p).to_le_bytes()).collect()
        };
        let cell_at = self.t.cell_at.rows(0..tokens)?;
        on.stream.write(&cell_at, &list(&|p| span.cell(p)))?;
        on.run(&self.place, PlaceRowsIo { rows: cells, at: &cell_at, x: rows })?;
        let kinds = [SpanKind::Start, SpanKind::Newline, SpanKind::End];
        for (i, kind) in kinds.into_iter().enumerate() {
            let at = self.t.marker_at[i].rows(0..tokens)?;
            on.stream.write(&at, &list(&|p| (span.kind(p) == Some(kind)).then_some(0)))?;
            on.run(&self.place, PlaceRowsIo { rows: &self.w.markers[i], at: &at, x: rows })?;
        }
        Ok(())
    }
}

/// The patches of each cell in reading order, -1 past the right and bottom edge.
fn cell_members((rows, columns): (u32, u32), side: u32) -> Vec<u8> {
    let mut bytes = vec![];
    for cell_row in 0..rows.div_ceil(side) {
        for cell_column in 0..columns.div_ceil(side) {
            for i in 0..side * side {
                let (row, column) = (cell_row * side + i / side, cell_column * side + i % side);
                let inside = row < rows && column < columns;
                let patch = if inside { (row * columns + column) as i32 } else { -1 };
                bytes.extend(patch.to_le_bytes());
            }
        }
    }
    bytes
}
