//! Worked cases of the linears.

use crate::buffer::{Buffer, alone, edges_agree};
use crate::{Card, Tensor, TensorMut};
use tandem_hal::num::Ue8m0;
use tandem_hal::{
    Bf16Linear, Bf16LinearIo, Decode, DecodeIo, Elem, Enc, F32Linear, F32LinearIo, GroupedLinear,
    GroupedLinearIo, Mxfp4Linear, Mxfp4LinearIo, Mxfp8Linear, Mxfp8LinearIo, Operator,
};

/// E4M3 code of one.
const ONE: u8 = 0x38;

fn mxfp8(d: &Mxfp8Linear, tokens: u64, x: &Buffer, weight: &Buffer) -> Vec<f32> {
    let mut y = Buffer::filled(Enc::BF16, &[tokens, d.n], 0xFF);
    let io = Mxfp8LinearIo { x: x.tensor(), weight: weight.tensor(), y: y.tensor_mut() };
    alone(|context| d.compute(io, context)).expect("checked operands");
    y.values()
}

fn bf16(d: &Bf16Linear, x: Tensor<'_>, weight: &Buffer, bias: &Buffer) -> Buffer {
    let tokens = x.rows() as u64;
    let mut y = Buffer::filled(Enc::BF16, &[tokens, d.n], 0xFF);
    let (weight, bias) = (weight.tensor(), bias.tensor());
    let io = Bf16LinearIo { x, weight, bias, y: y.tensor_mut() };
    alone(|context| d.compute(io, context)).expect("checked operands");
    y
}

#[test]
fn every_row_has_the_bits_of_scalar() {
    edges_agree::<Mxfp8Linear>();
    edges_agree::<Mxfp4Linear>();
    edges_agree::<Bf16Linear>();
    edges_agree::<F32Linear>();
    edges_agree::<GroupedLinear>();
}

#[test]
fn c006_a_scale_that_is_not_a_power_of_two() {
    // Linears take powers of two only, and such a scale is refused rather than cut.
    assert_eq!(Ue8m0::exact(1.5), None);
    let takes = Mxfp8Linear { n: 1, k: 32 }.operands().x.enc;
    assert!(matches!(takes, Enc::Scaled { scale: Elem::Ue8m0, .. }));
    // Where f32 scales are read, the mantissa counts.
    let codes: Vec<u8> = (0..128).map(|i| if i < 32 { ONE } else { 0 }).collect();
    let x8 = Buffer::raw(Enc::FP8_ROW128, &[1, 128], &codes, &1.5f32.to_le_bytes());
    let mut x = Buffer::filled(Enc::BF16, &[1, 128], 0);
    let decode = Decode { from: Enc::FP8_ROW128, width: 128 };
    let io = DecodeIo { x: x8.tensor(), y: x.tensor_mut() };
    alone(|context| decode.compute(io, context)).expect("checked operands");
    let weight = Buffer::of(Enc::BF16, &[1, 128], &[1.0; 128]);
    let d = Bf16Linear { n: 1, k: 128, bias: false };
    assert_eq!(bf16(&d, x.tensor(), &weight, &Buffer::absent()).values(), [48.0]);
}

#[test]
fn c012_each_tile_has_its_scale() {
    let x = Buffer::raw(Enc::Q8, &[1, 64], &[ONE; 64], &[127; 2]);
    let scales = [127, 128, 129, 130];
    let weight = Buffer::raw(Enc::MXFP8_TILE, &[64, 64], &[ONE; 64 * 64], &scales);
    let y = mxfp8(&Mxfp8Linear { n: 64, k: 64 }, 1, &x, &weight);
    assert_eq!((y[0], y[31], y[32], y[63]), (96.0, 96.0, 384.0, 384.0));
    assert_eq!(y.iter().sum::<f32>(), 15360.0);
}

#[test]
fn c014_each_group_of_k_has_its_scale() {
    let x = Buffer::raw(Enc::Q8, &[1, 128], &[ONE; 128], &[127, 128, 129, 130]);
    let tiles = Buffer::raw(Enc::MXFP8_TILE, &[1, 128], &[ONE; 128], &[127; 4]);
    assert_eq!(mxfp8(&Mxfp8Linear { n: 1, k: 128 }, 1, &x, &tiles), [480.0]);
    // FP4: code 2 is one.
    let fours = Buffer::raw(Enc::MXFP4, &[1, 128], &[0x22; 64], &[127; 4]);
    let mut y = Buffer::filled(Enc::BF16, &[1, 1], 0xFF);
    let io = Mxfp4LinearIo { x: x.tensor(), weight: fours.tensor(), y: y.tensor_mut() };
    alone(|context| Mxfp4Linear { n: 1, k: 128 }.compute(io, context)).expect("checked");
    assert_eq!(y.values(), [480.0]);
}

#[test]
fn c010_the_low_nibble_is_the_even_column() {
    // One activation picks a column of the weight at a time.
    let mut codes = vec![0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
    codes.resize(16, 0);
    let weight = Buffer::raw(Enc::MXFP4, &[1, 32], &codes, &[127]);
    let identity: Vec<u8> = (0..16 * 32).map(|i| if i / 32 == i % 32 { ONE } else { 0 }).collect();
    let x = Buffer::raw(Enc::Q8, &[16, 32], &identity, &[127; 16]);
    let mut y = Buffer::filled(Enc::BF16, &[16, 1], 0xFF);
    let io = Mxfp4LinearIo { x: x.tensor(), weight: weight.tensor(), y: y.tensor_mut() };
    alone(|context| Mxfp4Linear { n: 1, k: 32 }.compute(io, context)).expect("checked");
    let half = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let want: Vec<f32> = half.iter().copied().chain(half.iter().map(|v| -v)).collect();
    assert_eq!(y.values(), want);
}

#[test]
fn c018_awkward_n_has_no_edge_of_its_own() {
    for n in [16u64, 32, 48, 288, 512, 768, 1280, 2304, 5120] {
        let x = Buffer::raw(Enc::Q8, &[1, 64], &[ONE; 64], &[127, 126]);
        let tiles = n.div_ceil(32) as usize;
        let scales: Vec<u8> = (0..2 * tiles).map(|i| 120 + (i / 2 % 8) as u8).collect();
        let codes = vec![ONE; n as usize * 64];
        let weight = Buffer::raw(Enc::MXFP8_TILE, &[n, 64], &codes, &scales);
        let y = mxfp8(&Mxfp8Linear { n, k: 64 }, 1, &x, &weight);
        let want = |i: usize| 48.0 * 2f32.powi((i / 32 % 8) as i32 - 7);
        assert!(y.iter().enumerate().all(|(i, v)| *v == want(i)), "n = {n}");
    }
}

#[test]
fn c020_strided_and_shifted_rows_have_the_bits_of_packed_ones() {
    let (m, n, k, gap) = (3usize, 32u64, 64usize, 8usize);
    let real = |i: usize| ((i * 37) % 113) as f32 * 0.13 - 7.0;
    let packed: Vec<f32> = (0..m * k).map(real).collect();
    let weight: Vec<f32> = (0..n as usize * k).map(|i| real(5 * i + 3)).collect();
    let weight = Buffer::of(Enc::BF16, &[n, k as u64], &weight);
    let d = Bf16Linear { n, k: k as u64, bias: false };
    let x = Buffer::of(Enc::BF16, &[m as u64, k as u64], &packed);
    let want = bf16(&d, x.tensor(), &weight, &Buffer::absent());
    // Rows of k + 8 elements, the base one element on, every other element NaN.
    let mut codes = vec![0xFF; 2 * (1 + m * (k + gap))];
    for r in 0..m {
        codes[2 * (1 + r * (k + gap))..][..2 * k].copy_from_slice(&x.codes[2 * r * k..][..2 * k]);
    }
    let dense = Tensor::dense(Enc::BF16, &[m as u64, k as u64], &codes[2..], &[]);
    let strided = Tensor { stride: k + gap, ..dense };
    assert_eq!(bf16(&d, strided.clone(), &weight, &Buffer::absent()), want);
    // The same through the fast row and into strided rows of the output.
    let width = n as usize + gap;
    let mut out = vec![0xEE; 2 * m * width];
    let y = TensorMut::dense(Enc::BF16, &[m as u64, n], &mut out, &mut [], None);
    super::linear::blocked(
        &strided,
        &weight.tensor(),
        None,
        1,
        &mut TensorMut { stride: width, ..y },
    );
    for r in 0..m {
        let row = &out[2 * r * width..][..2 * width];
        assert_eq!(row[..2 * n as usize], want.codes[2 * r * n as usize..][..2 * n as usize]);
        assert!(row[2 * n as usize..].iter().all(|b| *b == 0xEE), "gaps are left alone");
    }
}

#[test]
fn the_bias_is_added_before_the_one_rounding() {
    // 256 + 1 is a tie in bf16 and rounds down; with the bias it does not.
    let x = Buffer::of(Enc::BF16, &[1, 2], &[256.0, 1.0]);
    let weight = Buffer::of(Enc::BF16, &[1, 2], &[1.0, 1.0]);
    let bias = Buffer::of(Enc::BF16, &[1], &[0.5]);
    let with = Bf16Linear { n: 1, k: 2, bias: true };
    assert_eq!(bf16(&with, x.tensor(), &weight, &bias).values(), [258.0]);
    let without = Bf16Linear { bias: false, ..with };
    assert_eq!(bf16(&without, x.tensor(), &weight, &Buffer::absent()).values(), [256.0]);
}

#[test]
fn f32_keeps_what_tf32_and_bf16_lose() {
    let x = Buffer::of(Enc::F32, &[1, 2], &[1.0 + f32::EPSILON, -1.0]);
    let weight = Buffer::of(Enc::F32, &[1, 2], &[1.0, 1.0]);
    let mut y = Buffer::filled(Enc::F32, &[1, 1], 0xFF);
    let io = F32LinearIo { x: x.tensor(), weight: weight.tensor(), y: y.tensor_mut() };
    let d = F32Linear { n: 1, k: 2, x: Elem::F32, weight: Elem::F32 };
    alone(|context| d.compute(io, context)).expect("checked operands");
    assert_eq!(y.values(), [f32::EPSILON]);
}

#[test]
fn groups_do_not_mix() {
    let (groups, n, k) = (2u64, 32u64, 32u64);
    // Token t, group g holds the constant 10 t + g + 1; the weight of group g is one times 2^g.
    let values = [[1.0f32; 32], [2.0; 32], [11.0; 32], [12.0; 32]].concat();
    let x = Buffer::of(Enc::BF16, &[2, groups, k], &values);
    let weight = Buffer::raw(Enc::MXFP8_TILE, &[64, k], &[ONE; 64 * 32], &[127, 128]);
    let mut y = Buffer::filled(Enc::BF16, &[2, groups, n], 0xFF);
    let io = GroupedLinearIo { x: x.tensor(), weight: weight.tensor(), y: y.tensor_mut() };
    alone(|context| GroupedLinear { groups, n, k }.compute(io, context)).expect("checked");
    let want = [[32.0f32; 32], [128.0; 32], [352.0; 32], [768.0; 32]].concat();
    assert_eq!(y.values(), want);
}

#[test]
fn a_nan_stays_in_its_row_and_group() {
    let mut values = vec![1.0f32; 3 * 64];
    values[64 + 32] = f32::NAN;
    let x = Buffer::of(Enc::BF16, &[3, 2, 32], &values);
    let weight = Buffer::raw(Enc::MXFP8_TILE, &[64, 32], &[ONE; 64 * 32], &[127, 127]);
    let mut y = Buffer::filled(Enc::BF16, &[3, 2, 32], 0xFF);
    let io = GroupedLinearIo { x: x.tensor(), weight: weight.tensor(), y: y.tensor_mut() };
    let d = GroupedLinear { groups: 2, n: 32, k: 32 };
    alone(|context| d.compute(io, context)).expect("checked operands");
    let nan: Vec<bool> = y.values().iter().map(|v| v.is_nan()).collect();
    assert!(nan.iter().enumerate().all(|(i, nan)| *nan == (i / 32 == 3)));
}
