//! Check values, and the rows against each other.

use super::{gated_silu, gelu, rotate_halves};
use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use crate::{Card, Host};
use tandem_hal::{
    AddRows, AddRowsIo, DenseAttention, DenseAttentionIo, Enc, GatedSilu, Gelu, GeluIo, Real,
    RotateHalves, RotateHalvesIo, Unfold, UnfoldIo,
};

fn compute<D: Card>(d: &D, io: Host<'_, D>) {
    alone(|context| d.compute(io, context)).expect("nothing to exchange, nothing to fail");
}
fn rounded(shape: &[u64], values: &[f32]) -> Buffer {
    Buffer::of(Enc::BF16, shape, values)
}

#[test]
fn the_frequencies_of_the_tower() {
    let d = RotateHalves { heads: 16, head_dim: 64, base: Real::new(10_000.0) };
    let f = d.frequencies();
    assert_eq!(f.len(), 16);
    let want = [1.0, 0.56234133, 0.31622776, 0.17782794, 0.1, 0.05623413];
    for (f, want) in f.iter().zip(want).chain([(&f[15], 1.7782794e-4)]) {
        assert!((f - want).abs() <= 1e-7 * want, "{f} is not {want}");
    }
}

#[test]
fn angles_are_those_of_the_row_then_of_the_column() {
    let d = RotateHalves { heads: 2, head_dim: 8, base: Real::new(10_000.0) };
    let angles = rotate_halves::angles(&d.frequencies(), 2, 3);
    let close = angles.iter().zip([2.0, 0.02, 3.0, 0.03]).all(|(a, w)| (a - w).abs() < 1e-8);
    assert!(close && angles.len() == 4, "{angles:?}");
}

#[test]
fn pairs_are_halves_apart() {
    let d = RotateHalves { heads: 2, head_dim: 8, base: Real::new(10_000.0) };
    // In head 1, element 1 meets element 5, by the row's second angle.
    let mut values = [0.0f32; 48];
    (values[9], values[16 + 9], values[32 + 9]) = (1.0, 1.0, 1.0);
    let mut x = rounded(&[3, 16], &values);
    let (row, column) = (Buffer::ints(&[3], &[50, -1, 50]), Buffer::ints(&[3], &[7, 7, -3]));
    let io = RotateHalvesIo { x: x.tensor_mut(), row: row.tensor(), column: column.tensor() };
    compute(&d, io);
    let got = x.values();
    let round = |x: f64| tandem_hal::num::bf16::round_f64(x);
    let angle = f64::from(50.0f32 * 0.01);
    assert_eq!((got[9], got[13]), (round(libm::cos(angle)), round(libm::sin(angle))));
    assert_eq!(got.iter().filter(|v| **v != 0.0).count(), 4);
    assert_eq!(got[16..], values[16..], "negative positions stay");
}

#[test]
fn gelu_is_the_exact_one() {
    let x = [0.0, 1.0, -1.0, 3.0, -6.0];
    let want = [0.0, 0.841_344_746, -0.158_655_254, 2.995_950_3, -5.919_526e-9];
    for (x, want) in x.iter().zip(want) {
        let got = gelu::gelu(*x);
        assert!((got - want).abs() <= 2e-7 * want.abs(), "gelu({x}) is {got}, not {want}");
    }
    let x = rounded(&[1, 3], &[f32::NEG_INFINITY, f32::INFINITY, f32::NAN]);
    let mut y = Buffer::filled(Enc::BF16, &[1, 3], 0xA5);
    compute(&Gelu { width: 3 }, GeluIo { x: x.tensor(), y: y.tensor_mut() });
    let got = y.values();
    assert_eq!(got[0].to_bits(), (-0.0f32).to_bits());
    assert!(got[1] == f32::INFINITY && got[2].is_nan());
}

#[test]
fn the_gate_is_rounded_before_the_product() {
    // silu(1) = 0.731058..., 0.73046875 in bf16.
    assert_eq!(gated_silu::unit(1.0, 3.0), 3.0 * 0.730_468_75);
    assert_eq!(gated_silu::unit(0.0, 3.0), 0.0);
}

#[test]
fn rows_add_up() {
    let y = rounded(&[1, 3], &[1.0, -2.0, 0.00390625]);
    let mut x = rounded(&[1, 3], &[2.0, 2.0, 1.0]);
    compute(&AddRows { width: 3 }, AddRowsIo { y: y.tensor(), x: x.tensor_mut() });
    assert_eq!(x.values(), [3.0, 0.0, 1.0], "1 + 2^-8 is a tie, to even");
}

#[test]
fn cells_are_channel_major() {
    let d = Unfold { width: 2, side: 2 };
    let x = rounded(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let at = Buffer::ints(&[2, 4], &[0, 1, -1, 2, 3, -7, 2, 0]);
    let mut y = Buffer::filled(Enc::BF16, &[2, 8], 0xA5);
    compute(&d, UnfoldIo { x: x.tensor(), at: at.tensor(), y: y.tensor_mut() });
    let first = [1.0, 3.0, 0.0, 5.0, 2.0, 4.0, 0.0, 6.0];
    assert_eq!(y.values(), [first, [0.0, 0.0, 5.0, 1.0, 0.0, 0.0, 6.0, 2.0]].concat());
}

fn attend(q: &[f32], k: &[f32], v: &[f32], scale: f32) -> Vec<f32> {
    let d = DenseAttention { heads: 1, head_dim: 2, scale: Real::new(scale) };
    let rows = |x: &[f32]| rounded(&[x.len() as u64 / 2, 2], x);
    let (q, k, v) = (rows(q), rows(k), rows(v));
    let mut y = Buffer::filled(Enc::BF16, &q.shape, 0xA5);
    let io = DenseAttentionIo { q: q.tensor(), k: k.tensor(), v: v.tensor(), y: y.tensor_mut() };
    compute(&d, io);
    y.values()
}

#[test]
fn attention_rounds_the_numerators_weights_only() {
    // Scores 0 and -1: weights 1 and 0.367879..., 0.3671875 in bf16.
    let got = attend(&[1.0, 0.0], &[0.0, 0.0, -2.0, 5.0], &[1.0, 0.0, 0.0, 1.0], 0.5);
    let p = f64::from(libm::exp(-1.0) as f32);
    let want = [1.0 / (1.0 + p), 0.3671875 / (1.0 + p)].map(tandem_hal::num::bf16::round_f64);
    assert_eq!(got, want);
    assert_eq!(attend(&[1.0, 2.0], &[], &[], 1.0), [0.0, 0.0], "no keys");
    let nan = attend(&[f32::NAN, 0.0, 1.0, 0.0], &[1.0, 0.0], &[3.0, 4.0], 1.0);
    assert!(nan[0].is_nan() && nan[2..] == [3.0, 4.0], "{nan:?}");
}

#[test]
fn rows_of_every_operator_agree() {
    fn agree<D: Card>() {
        edges_agree::<D>();
        draws_agree::<D>(20);
    }
    agree::<RotateHalves>();
    agree::<DenseAttention>();
    agree::<GatedSilu>();
    agree::<Gelu>();
    agree::<AddRows>();
    agree::<Unfold>();
}
