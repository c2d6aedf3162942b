//! Worked cases of the hyper-connections.

use crate::Card;
use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use tandem_hal::{
    Cast, CastIo, Enc, MhcCollapse, MhcCollapseIo, MhcCollapseNorm, MhcCollapseNormIo, MhcExpand,
    MhcExpandIo, MhcMean, MhcMeanIo, MhcMixes, MhcMixesIo, MhcStart, MhcStartIo, Real, RmsNorm,
    RmsNormIo,
};

const STREAMS: u64 = 4;

/// Pre, post and comb of one token whose streams are all ones: with a projection whose first column
/// is `m`, the coefficients before scale and base.
fn mixes(m: &[f32; 24], base: &[f32; 24], scale: [f32; 3]) -> [Vec<f32>; 3] {
    let width = 8u64;
    let k = (STREAMS * width) as usize;
    let h = Buffer::of(Enc::BF16, &[1, STREAMS, width], &vec![1.0; k]);
    let mut fn_ = vec![0.0f32; 24 * k];
    for (row, m) in fn_.chunks_mut(k).zip(m) {
        row[0] = *m;
    }
    let projection = Buffer::of(Enc::F32, &[24, k as u64], &fn_);
    let (base, scale) = (Buffer::of(Enc::F32, &[24], base), Buffer::of(Enc::F32, &[3], &scale));
    let mut pre = Buffer::filled(Enc::F32, &[1, STREAMS], 0xFF);
    let mut post = pre.clone();
    let mut comb = Buffer::filled(Enc::F32, &[1, STREAMS, STREAMS], 0xFF);
    let (eps, norm_eps) = (Real::new(1e-6), Real::new(1e-20));
    let d = MhcMixes { streams: STREAMS, width, iterations: 20, eps, norm_eps };
    let io = MhcMixesIo {
        streams: h.tensor(),
        projection: projection.tensor(),
        base: base.tensor(),
        scale: scale.tensor(),
        pre: pre.tensor_mut(),
        post: post.tensor_mut(),
        comb: comb.tensor_mut(),
    };
    alone(|context| d.compute(io, context)).expect("checked operands");
    [pre, post, comb].map(|b| b.values())
}

fn expand(x: &[f32], h: &[f32], post: &[f32], comb: &[f32]) -> Vec<f32> {
    let width = x.len() as u64;
    let d = MhcExpand { streams: STREAMS, width };
    let x = Buffer::of(Enc::BF16, &[1, width], x);
    let h = Buffer::of(Enc::BF16, &[1, STREAMS, width], h);
    let post = Buffer::of(Enc::F32, &[1, STREAMS], post);
    let comb = Buffer::of(Enc::F32, &[1, STREAMS, STREAMS], comb);
    let mut y = Buffer::filled(Enc::BF16, &[1, STREAMS, width], 0xFF);
    let io = MhcExpandIo {
        x: x.tensor(),
        residual: h.tensor(),
        post: post.tensor(),
        comb: comb.tensor(),
        y: y.tensor_mut(),
    };
    alone(|context| d.compute(io, context)).expect("checked operands");
    y.values()
}

fn collapse(d: &MhcCollapse, h: &Buffer, pre: &Buffer) -> Buffer {
    let tokens = pre.tensor().rows() as u64;
    let mut y = Buffer::filled(Enc::BF16, &[tokens, d.width], 0xFF);
    let io = MhcCollapseIo { streams: h.tensor(), pre: pre.tensor(), y: y.tensor_mut() };
    alone(|context| d.compute(io, context)).expect("checked operands");
    y
}

/// Equal to published values, which came from f32 arithmetic: two ulps of numbers below one.
fn near(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() <= f32::EPSILON + 1e-8, "{got:?} is not {want:?}");
    }
}

#[test]
fn every_row_has_the_bits_of_scalar() {
    edges_agree::<MhcStart>();
    edges_agree::<MhcMixes>();
    edges_agree::<MhcCollapse>();
    edges_agree::<MhcCollapseNorm>();
    edges_agree::<MhcExpand>();
    edges_agree::<MhcMean>();
    draws_agree::<MhcMixes>(20);
    draws_agree::<MhcCollapseNorm>(20);
}

#[test]
fn b4_mixes() {
    let m: [f32; 24] = std::array::from_fn(|i| 0.1 * (i as f32 - 11.0));
    let mut base: [f32; 24] = std::array::from_fn(|i| 0.01 * i as f32);
    // C_00, C_12 and C_31 before the softmax.
    base[8] += 1.0;
    base[8 + 4 + 2] -= 0.7;
    base[8 + 12 + 1] += 0.4;
    let [pre, post, comb] = mixes(&m, &base, [0.5, 0.25, 1.0]);
    near(&pre, &[0.3658654, 0.3798946, 0.3941273, 0.4085421]);
    near(&post, &[0.9326022, 0.9500416, 0.9675114, 0.9850011]);
    let want = [
        [0.3977427, 0.1752807, 0.2315095, 0.1954661],
        [0.2315095, 0.277328, 0.1818963, 0.3092653],
        [0.1954662, 0.2341512, 0.3092653, 0.2611163],
        [0.1752807, 0.3132391, 0.277328, 0.2341512],
    ];
    near(&comb, &want.concat());
    for i in 0..4 {
        let row: f32 = comb[4 * i..4 * i + 4].iter().sum();
        let column: f32 = comb.iter().skip(i).step_by(4).sum();
        near(&[row, column], &[0.999999, 0.999999]);
    }
}

#[test]
fn c046_mixes_of_nothing() {
    let [pre, post, comb] = mixes(&[0.0; 24], &[0.0; 24], [0.0; 3]);
    near(&pre, &[0.500001; 4]);
    assert_eq!(post, [1.0; 4]);
    near(&comb, &[0.2499998; 16]);
}

#[test]
fn c046_the_first_sublayer_reads_stream_0() {
    let x = Buffer::of(Enc::BF16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut h = Buffer::filled(Enc::BF16, &[2, STREAMS, 3], 0xFF);
    let mut pre = Buffer::filled(Enc::F32, &[2, STREAMS], 0xFF);
    let io = MhcStartIo { x: x.tensor(), streams: h.tensor_mut(), pre: pre.tensor_mut() };
    let d = MhcStart { streams: STREAMS, width: 3 };
    alone(|context| d.compute(io, context)).expect("checked operands");
    let rows = [[1.0f32, 2.0, 3.0].repeat(4), [4.0, 5.0, 6.0].repeat(4)].concat();
    assert_eq!(h.values(), rows);
    assert_eq!(pre.values(), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(collapse(&MhcCollapse { streams: STREAMS, width: 3 }, &h, &pre), x);
}

#[test]
fn c045_the_residual_mixes_over_its_source() {
    let h: Vec<f32> = (1..=4).flat_map(|s| [s as f32; 2]).collect();
    let mut comb = [0.0f32; 16];
    for i in 0..4 {
        comb[4 * i + (i + 1) % 4] = 1.0;
    }
    let y = expand(&[0.0; 2], &h, &[1.0; 4], &comb);
    assert_eq!(y, [4.0, 4.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
}

#[test]
fn expand_adds_the_output_by_its_post() {
    let h: Vec<f32> = (1..=4).flat_map(|s| [s as f32; 2]).collect();
    let y = expand(&[10.0, -10.0], &h, &[1.0, 0.5, 2.0, 0.0], &[0.25; 16]);
    assert_eq!(y, [12.5, -7.5, 7.5, -2.5, 22.5, -17.5, 2.5, 2.5]);
}

#[test]
fn mean_divides_before_its_rounding() {
    let values = [1.0f32, 2.0, 4.0, 1.0 / 64.0];
    let h = Buffer::of(Enc::BF16, &[1, STREAMS, 1], &values);
    let mut y = Buffer::filled(Enc::BF16, &[1, 1], 0xFF);
    let io = MhcMeanIo { streams: h.tensor(), y: y.tensor_mut() };
    let d = MhcMean { streams: STREAMS, width: 1 };
    alone(|context| d.compute(io, context)).expect("checked operands");
    // 7.015625 / 4 = 1.75390625 exactly; the nearest bf16 is 1.75.
    assert_eq!(y.values(), [1.75]);
}

#[test]
fn collapse_norm_has_the_bits_of_its_steps() {
    let (tokens, width) = (5u64, 96u64);
    let varied = |count: u64, step: u64| -> Vec<f32> {
        (0..count).map(|i| ((i * step) % 2003) as f32 * 0.0021 - 2.1).collect()
    };
    let h = Buffer::of(Enc::BF16, &[tokens, 4, width], &varied(tokens * 4 * width, 7919));
    let pre = Buffer::of(Enc::F32, &[tokens, 4], &varied(tokens * 4, 311));
    let weight = Buffer::of(Enc::BF16, &[width], &varied(width, 97));
    let x = collapse(&MhcCollapse { streams: 4, width }, &h, &pre);
    let eps = Real::new(1e-20);
    let mut want = Buffer::filled(Enc::BF16, &[tokens, width], 0xFF);
    let io = RmsNormIo { x: x.tensor(), weight: weight.tensor(), y: want.tensor_mut() };
    alone(|context| RmsNorm { width, eps }.compute(io, context)).expect("checked");
    let mut want8 = Buffer::filled(Enc::Q8, &[tokens, width], 0xFF);
    let io = CastIo { x: want.tensor(), y: want8.tensor_mut() };
    alone(|context| Cast { to: Enc::Q8, width }.compute(io, context)).expect("checked");
    let mut y = Buffer::filled(Enc::BF16, &[tokens, width], 0xEE);
    let mut y8 = Buffer::filled(Enc::Q8, &[tokens, width], 0xEE);
    let io = MhcCollapseNormIo {
        streams: h.tensor(),
        pre: pre.tensor(),
        weight: weight.tensor(),
        y: y.tensor_mut(),
        y8: y8.tensor_mut(),
    };
    let d = MhcCollapseNorm { streams: 4, width, eps };
    alone(|context| d.compute(io, context)).expect("checked operands");
    assert_eq!((y, y8), (want, want8));
}

#[test]
fn a_nan_stays_in_its_token() {
    let mut values = vec![1.0f32; 3 * 4 * 2];
    values[4 * 2 + 3] = f32::NAN;
    let h = Buffer::of(Enc::BF16, &[3, 4, 2], &values);
    let pre = Buffer::of(Enc::F32, &[3, 4], &[0.25; 12]);
    let y = collapse(&MhcCollapse { streams: 4, width: 2 }, &h, &pre).values();
    assert!(y[3].is_nan());
    assert_eq!([y[0], y[1], y[2], y[4], y[5]], [1.0; 5]);
}
