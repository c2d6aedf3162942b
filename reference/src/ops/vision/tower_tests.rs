//! The worked picture tower and aligner, by cards alone.
//!
//! The worked numbers are fp32 throughout, the cards round weights and every result to bf16.
//! Tolerances: a row of the tower passes about ten roundings of 2^-9 relative, and its weights one,
//! before a norm brings it to a size of one; their sum in quadrature is below 2^-7, and the largest of
//! 320 elements lies four deviations out, so 0.03. The aligner's outputs are sums of 144 products of
//! such elements with weights below 1/8, a tenth in size: 0.003.

use crate::buffer::{Buffer, alone};
use crate::{Card, Host};
use tandem_hal::{
    AddRows, AddRowsIo, Bf16Linear, Bf16LinearIo, DenseAttention, DenseAttentionIo, Enc, GatedSilu,
    GatedSiluIo, Gelu, GeluIo, Real, RmsNorm, RmsNormIo, RotateHalves, RotateHalvesIo, Unfold,
    UnfoldIo,
};

const HEIGHT: u64 = 4;
const WIDTH: u64 = 5;
const DIM: u64 = 16;
const INTER: u64 = 12;
const TEXT: u64 = 8;

fn compute<D: Card>(d: &D, io: Host<'_, D>) {
    alone(|context| d.compute(io, context)).expect("nothing to exchange, nothing to fail");
}

/// The worked example's filling.
fn fill(shape: &[u64], seed: u64, scale: f32, offset: f32) -> Buffer {
    let value = |i: u64| ((7919 * i + 104_729 * seed) % 2003) as f32 - 1001.0;
    let count = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| offset + scale * value(i) / 1024.0).collect();
    Buffer::of(Enc::BF16, shape, &values)
}

fn out(rows: u64, width: u64) -> Buffer {
    Buffer::filled(Enc::BF16, &[rows, width], 0xA5)
}

fn linear(x: &Buffer, n: u64, seed: u64, scale: f32, bias: Option<u64>) -> Buffer {
    let k = x.shape[1];
    let weight = fill(&[n, k], seed, scale, 0.0);
    let b = bias.map_or_else(Buffer::absent, |seed| fill(&[n], seed, 0.125, 0.0));
    let mut y = out(x.shape[0], n);
    let (x, weight, bias_of) = (x.tensor(), weight.tensor(), b.tensor());
    let io = Bf16LinearIo { x, weight, bias: bias_of, y: y.tensor_mut() };
    compute(&Bf16Linear { n, k, bias: bias.is_some() }, io);
    y
}

fn norm(x: &Buffer, seed: u64) -> Buffer {
    let weight = fill(&[DIM], seed, 0.25, 1.0);
    let mut y = out(x.shape[0], DIM);
    let io = RmsNormIo { x: x.tensor(), weight: weight.tensor(), y: y.tensor_mut() };
    compute(&RmsNorm { width: DIM, eps: Real::new(1e-6) }, io);
    y
}

fn add(x: &mut Buffer, y: &Buffer) {
    let width = x.shape[1];
    compute(&AddRows { width }, AddRowsIo { y: y.tensor(), x: x.tensor_mut() });
}

/// Columns `from .. from + DIM` of every row.
fn columns(x: &Buffer, from: usize) -> Buffer {
    let values = x.values();
    let rows = values.chunks(x.shape[1] as usize);
    let part: Vec<f32> = rows.flat_map(|row| row[from..from + DIM as usize].to_vec()).collect();
    Buffer::of(Enc::BF16, &[x.shape[0], DIM], &part)
}

fn rotated(mut x: Buffer) -> Buffer {
    let patches = HEIGHT * WIDTH;
    let place = |f: fn(u64) -> u64| -> Vec<i32> { (0..patches).map(|i| f(i) as i32).collect() };
    let row = Buffer::ints(&[patches], &place(|i| i / WIDTH));
    let column = Buffer::ints(&[patches], &place(|i| i % WIDTH));
    let d = RotateHalves { heads: 2, head_dim: DIM / 2, base: Real::new(10_000.0) };
    let io = RotateHalvesIo { x: x.tensor_mut(), row: row.tensor(), column: column.tensor() };
    compute(&d, io);
    x
}

fn attention(x: &Buffer) -> Buffer {
    let qkv = linear(x, 3 * DIM, 4, 0.25, Some(5));
    let (q, k) = (rotated(columns(&qkv, 0)), rotated(columns(&qkv, DIM as usize)));
    let v = columns(&qkv, 2 * DIM as usize);
    let mut y = out(x.shape[0], DIM);
    let d = DenseAttention { heads: 2, head_dim: 8, scale: Real::new(1.0 / 8f32.sqrt()) };
    let io = DenseAttentionIo { q: q.tensor(), k: k.tensor(), v: v.tensor(), y: y.tensor_mut() };
    compute(&d, io);
    linear(&y, DIM, 6, 0.25, Some(7))
}

fn tower() -> Buffer {
    let patches = fill(&[HEIGHT * WIDTH, 12], 16, 1.0, 0.0);
    let mut x = linear(&patches, DIM, 1, 0.25, Some(2));
    let attended = attention(&norm(&x, 3));
    add(&mut x, &attended);
    let both = linear(&norm(&x, 8), 2 * INTER, 9, 0.25, None);
    let mut unit = out(x.shape[0], INTER);
    compute(&GatedSilu { inter: INTER }, GatedSiluIo { x: both.tensor(), y: unit.tensor_mut() });
    let fed = linear(&unit, DIM, 10, 0.25, None);
    add(&mut x, &fed);
    norm(&x, 11)
}

fn aligner(x: &Buffer) -> Buffer {
    let (cells_high, cells_wide) = (HEIGHT.div_ceil(3), WIDTH.div_ceil(3));
    let mut at = vec![];
    for cell in 0..cells_high * cells_wide {
        for i in 0..9 {
            let (y, x) = (cell / cells_wide * 3 + i / 3, cell % cells_wide * 3 + i % 3);
            at.push(if y < HEIGHT && x < WIDTH { (y * WIDTH + x) as i32 } else { -1 });
        }
    }
    let cells = cells_high * cells_wide;
    let at = Buffer::ints(&[cells, 9], &at);
    let mut unfolded = out(cells, 9 * DIM);
    let io = UnfoldIo { x: x.tensor(), at: at.tensor(), y: unfolded.tensor_mut() };
    compute(&Unfold { width: DIM, side: 3 }, io);
    let inner = linear(&unfolded, TEXT, 12, 0.125, Some(13));
    let mut active = out(cells, TEXT);
    compute(&Gelu { width: TEXT }, GeluIo { x: inner.tensor(), y: active.tensor_mut() });
    linear(&active, TEXT, 14, 0.125, Some(15))
}

fn near(got: &[f32], want: &[f32], bound: f32) {
    assert!(got.len() >= want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= bound, "element {i} is {g}, not {w}");
    }
}

#[test]
fn the_filling_is_the_worked_one() {
    let exact = [-0.1044921875, -0.127197265625, -0.14990234375, -0.172607421875, -0.1953125];
    let rounded = exact.map(tandem_hal::num::bf16::round_f64);
    assert_eq!(fill(&[DIM, 12], 1, 0.25, 0.0).values()[..5], rounded);
}

#[test]
fn the_worked_tower() {
    let x = tower().values();
    let first = [
        -0.660232, 1.110211, -0.95482, 0.990326, -0.696497, 1.44413, -0.573434, -0.307565,
        0.634966, -1.291856, 0.54612, -1.720192, 1.455348, -0.854429, 0.97502, -0.284304,
    ];
    near(&x, &first, 0.03);
    near(&x[19 * DIM as usize..], &[-0.988817, 0.724338, -0.164955, -0.33212], 0.03);
    let sum: f32 = x.iter().sum();
    let size = x.iter().map(|v| v.abs()).sum::<f32>() / x.len() as f32;
    assert!((sum - 4.15051).abs() < 0.2 && (size - 0.879076).abs() < 0.002, "{sum} {size}");
}

#[test]
fn the_worked_aligner() {
    let want = [
        [
            0.0891336, -0.1056992, -0.1371708, -0.0082719, -0.1931749, -0.0904515, -0.0957476,
            -0.0361437,
        ],
        [
            -0.0611179, -0.0778966, -0.046597, -0.1215072, -0.1026584, -0.0411707, -0.1462689,
            0.1170867,
        ],
        [-0.006394, -0.0627064, -0.1376013, 0.0240938, -0.1454566, -0.1486712, -0.0586565, 0.0163],
        [0.048089, -0.0723075, -0.189544, -0.0372187, -0.1320639, -0.108815, -0.0969749, 0.0526867],
    ];
    near(&aligner(&tower()).values(), &want.concat(), 0.003);
}
