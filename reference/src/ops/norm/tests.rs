//! Worked cases of norms and rotations.

use super::rotate::{Rotation, queries};
use crate::Card;
use crate::buffer::{Buffer, alone, edges_agree};
use tandem_hal::num::bf16;
use tandem_hal::{
    Cast, CastIo, Enc, Real, RmsNorm, RmsNormCast, RmsNormCastIo, RmsNormIo, RmsNormRotate,
    RmsNormRotateIo, Rotate, RotateIo,
};

/// The published table without interpolation, pair by pair.
const PLAIN: &str = "1 0.749894202 0.562341332 0.421696514 0.316227764 0.237137392 0.177827939 \
    0.133352146 0.100000001 0.0749894157 0.0562341288 0.0421696492 0.0316227786 0.0237137359 \
    0.0177827943 0.0133352149 0.00999999978 0.00749894232 0.00562341325 0.00421696482 \
    0.00316227786 0.00237137382 0.00177827943 0.00133352145 0.00100000005 7.49894185e-4 \
    5.62341302e-4 4.21696546e-4 3.16227786e-4 2.37137385e-4 1.7782794e-4 1.3335215e-4";
/// The published table with interpolation.
const YARN: &str = "1 0.687656045 0.472870797 0.325172424 0.223606795 0.153764561 0.105737135 \
    0.0727107748 0.0500000007 0.0343828015 0.0236435384 0.0162586235 0.0111803403 0.00768822804 \
    0.00528685609 0.00363553851 0.00226562493 0.00139680132 8.49689706e-4 5.08081983e-4 \
    2.96977785e-4 1.68179977e-4 9.08678412e-5 4.5444227e-5 1.95312532e-5 5.37231244e-6 \
    3.69430336e-6 2.5404097e-6 1.74692798e-6 1.20128561e-6 8.260713e-7 5.6805294e-7";

const EPS: Real = Real::new(1e-20);

/// Varied bf16 rows.
fn rows(tokens: u64, width: u64) -> Buffer {
    let value = |i: u64| ((i * 7919 + 13) % 2003) as f32 * 0.011 - 11.0;
    let values: Vec<f32> = (0..tokens * width).map(value).collect();
    Buffer::of(Enc::BF16, &[tokens, width], &values)
}

fn rms(x: &Buffer, weight: &Buffer, eps: Real) -> Buffer {
    let tensor = x.tensor();
    let mut y = Buffer::filled(Enc::BF16, tensor.shape(), 0xFF);
    let d = RmsNorm { width: tensor.cols() as u64, eps };
    let io = RmsNormIo { x: tensor, weight: weight.tensor(), y: y.tensor_mut() };
    alone(|context| d.compute(io, context)).expect("checked operands");
    y
}

fn rotate(d: &Rotate, x: &mut Buffer, positions: &[i32]) {
    let positions: Vec<u8> = positions.iter().flat_map(|p| p.to_le_bytes()).collect();
    let position = Buffer::raw(Enc::I32, &[positions.len() as u64 / 4], &positions, &[]);
    let io = RotateIo { x: x.tensor_mut(), position: position.tensor() };
    alone(|context| d.compute(io, context)).expect("checked operands");
}

/// One head of the rotated dims only.
fn key(long: bool) -> Rotate {
    Rotate { heads: 1, head_dim: 64, ..queries(long) }
}

#[test]
fn every_row_has_the_bits_of_scalar() {
    edges_agree::<RmsNorm>();
    edges_agree::<RmsNormCast>();
    edges_agree::<Rotate>();
    edges_agree::<RmsNormRotate>();
}

#[test]
fn rms_divides_by_the_root_mean_square() {
    let x = Buffer::of(Enc::BF16, &[2, 2], &[3.0, 4.0, 0.0, 0.0]);
    let weight = Buffer::of(Enc::BF16, &[2], &[1.0, 2.0]);
    let want = [3.0 / 12.5f64.sqrt(), 8.0 / 12.5f64.sqrt(), 0.0, 0.0].map(bf16::round_f64);
    assert_eq!(rms(&x, &weight, EPS).values(), want, "a row of zeros stays zero");
}

#[test]
fn rms_rounds_once() {
    let (x, third) = (Buffer::of(Enc::BF16, &[1, 2], &[3.0, 4.0]), 3.0 / 12.5f64.sqrt());
    let once = |w: f32| bf16::round_f64(f64::from(w) * third);
    let twice = |w: f32| bf16::round_f32(w * bf16::round_f64(third));
    let weights = (128..256).map(|w| w as f32 / 128.0);
    let telling: Vec<f32> = weights.filter(|w| once(*w) != twice(*w)).collect();
    assert!(!telling.is_empty(), "some weight must tell one rounding from two");
    for w in telling {
        let weight = Buffer::of(Enc::BF16, &[2], &[w, 1.0]);
        assert_eq!(rms(&x, &weight, EPS).values()[0], once(w));
    }
}

#[test]
fn rms_keeps_tiny_rows_and_drops_rows_beyond_f32() {
    let weight = Buffer::of(Enc::BF16, &[2], &[1.0, 1.0]);
    // 1e-30 squared is far below eps, which then is all of the mean.
    let tiny = Buffer::of(Enc::BF16, &[1, 2], &[1e-30, -1e-30]);
    let scaled = tiny.values()[0] as f64 / f64::from(EPS.value()).sqrt();
    assert_eq!(rms(&tiny, &weight, EPS).values(), [1.0, -1.0].map(|s| bf16::round_f64(s * scaled)));
    // The square of 1e38 is infinite in f32.
    let huge = Buffer::of(Enc::BF16, &[1, 2], &[1e38, 1.0]);
    assert_eq!(rms(&huge, &weight, EPS).values(), [0.0, 0.0]);
    let infinite = Buffer::of(Enc::BF16, &[1, 2], &[f32::INFINITY, 1.0]);
    let y = rms(&infinite, &weight, EPS).values();
    assert!(y[0].is_nan() && y[1] == 0.0);
}

#[test]
fn rms_cast_has_the_bits_of_its_steps() {
    let (x, weight) = (rows(5, 96), rows(1, 96));
    let weight = Buffer::raw(Enc::BF16, &[96], &weight.codes, &[]);
    let normed = rms(&x, &weight, EPS);
    let mut want = Buffer::filled(Enc::Q8, &[5, 96], 0xFF);
    let io = CastIo { x: normed.tensor(), y: want.tensor_mut() };
    alone(|context| Cast { to: Enc::Q8, width: 96 }.compute(io, context)).expect("checked");
    let mut got = Buffer::filled(Enc::Q8, &[5, 96], 0xFF);
    let io = RmsNormCastIo { x: x.tensor(), weight: weight.tensor(), y: got.tensor_mut() };
    let d = RmsNormCast { width: 96, eps: EPS };
    alone(|context| d.compute(io, context)).expect("checked operands");
    assert_eq!(got, want);
}

#[test]
fn rms_rotate_has_the_bits_of_its_steps() {
    let d = RmsNormRotate { eps: EPS, rotate: Rotate { head_dim: 128, group: 2, ..key(true) } };
    let (x, weight) = (rows(5, 128), rows(1, 128));
    let weight = Buffer::raw(Enc::BF16, &[128], &weight.codes, &[]);
    let positions = [0, -1, 7, 65_537, 1_000_000];
    let mut want = rms(&x, &weight, EPS);
    rotate(&d.rotate, &mut want, &positions);
    let bytes: Vec<u8> = positions.iter().flat_map(|p: &i32| p.to_le_bytes()).collect();
    let position = Buffer::raw(Enc::I32, &[5], &bytes, &[]);
    let mut got = Buffer::filled(Enc::BF16, &[5, 128], 0xFF);
    let (weight, position) = (weight.tensor(), position.tensor());
    let io = RmsNormRotateIo { x: x.tensor(), weight, position, y: got.tensor_mut() };
    alone(|context| d.compute(io, context)).expect("checked operands");
    assert_eq!(got, want);
}

#[test]
fn frequencies_are_the_published_tables() {
    // Where the published power was an ulp off, its reciprocal is one or two off.
    let off: [&[usize]; 2] = [&[5, 27], &[3, 6, 10, 14, 23, 28]];
    for (table, long, off) in [(PLAIN, false, off[0]), (YARN, true, off[1])] {
        let published = table.split_whitespace().map(|f| f.parse::<f32>().expect("a number"));
        let ours = key(long).frequencies();
        assert_eq!(ours.len(), 32);
        for (i, (a, b)) in ours.iter().zip(published).enumerate() {
            let apart = a.to_bits().abs_diff(b.to_bits());
            let allowed = if off.contains(&i) { 1..=2 } else { 0..=0 };
            assert!(allowed.contains(&apart), "pair {i}: {a:e} is {apart} ulps from {b:e}");
        }
    }
}

#[test]
fn c033_two_tables_chosen_by_the_layer() {
    let digits = |x: f32, n: usize| format!("{x:.0$e}", n - 1);
    let (plain, long) = (key(false).frequencies(), key(true).frequencies());
    assert_eq!((plain[0], long[0]), (1.0, 1.0));
    assert_eq!(digits(plain[15], 7), "1.333521e-2");
    // The case shows the exact power; the nearest f32 already differs in the digit shown last.
    assert_eq!(plain[31], 1.333_521_432_163_324e-4f64 as f32);
    assert_eq!(digits(1000.0 * plain[15], 8), "1.3335215e1");
    assert_eq!(digits(long[15], 7), "3.635539e-3");
    assert_eq!(digits(long[31], 7), "5.680529e-7");
    assert_eq!(digits(1000.0 * long[15], 7), "3.635539e0");
    // Pairs up to 15 keep their frequency, those from 25 on are divided whole.
    let uninterpolated = Rotate { yarn: None, ..key(true) }.frequencies();
    assert_eq!(long[..=15], uninterpolated[..=15]);
    assert!((25..32).all(|i| long[i] == uninterpolated[i] / 16.0));
    assert!(long[16] < uninterpolated[16] && long[24] > uninterpolated[24] / 16.0);
}

#[test]
fn c034_an_entry_rotates_at_its_first_token() {
    let keys = rows(1, 64);
    let turned = |group, position| {
        let mut x = keys.clone();
        rotate(&Rotate { group, ..key(true) }, &mut x, &[position]);
        x
    };
    // Ratio 2, entry 3 holds tokens 6 and 7; ratio 1, entry 3 holds token 3.
    assert_eq!(turned(2, 7), turned(1, 6));
    assert_eq!(turned(2, 6), turned(1, 6));
    assert_ne!(turned(2, 7), turned(1, 7));
    assert_ne!(turned(2, 7), turned(1, 3));
}

#[test]
fn the_angle_is_one_f32_product() {
    let d = key(true);
    let t = 1_048_575;
    let turns = Rotation::of(&d).turns(t).expect("not a padding row");
    for (f, [cos, sin]) in d.frequencies().iter().zip(turns) {
        let angle = f64::from(t as f32 * f);
        assert_eq!((cos, sin), (libm::cos(angle) as f32, libm::sin(angle) as f32));
    }
}

#[test]
fn rotation_turns_adjacent_pairs_of_the_last_dims() {
    // One radian on the first pair; dims before the last two stay.
    let d = Rotate { head_dim: 4, rotary: 2, ..key(false) };
    let mut x = Buffer::of(Enc::BF16, &[2, 4], &[5.0, 6.0, 1.0, 0.0, 5.0, 6.0, 0.0, 1.0]);
    rotate(&d, &mut x, &[1, 1]);
    let (cos, sin) = (bf16::round_f64(libm::cos(1.0)), bf16::round_f64(libm::sin(1.0)));
    assert_eq!(x.values(), [5.0, 6.0, cos, sin, 5.0, 6.0, -sin, cos]);
    let inverse = Rotate { inverse: true, ..d };
    let mut x = Buffer::of(Enc::BF16, &[1, 4], &[5.0, 6.0, 1.0, 0.0]);
    rotate(&inverse, &mut x, &[1]);
    assert_eq!(x.values(), [5.0, 6.0, cos, -sin]);
}

#[test]
fn padding_rows_keep_every_bit() {
    let mut codes = rows(2, 64).codes;
    // A signalling NaN that no arithmetic would keep.
    codes[128..130].copy_from_slice(&[0x81, 0x7F]);
    let mut x = Buffer::raw(Enc::BF16, &[2, 64], &codes, &[]);
    rotate(&key(false), &mut x, &[9, -1]);
    assert_ne!(x.codes[..128], codes[..128]);
    assert_eq!(x.codes[128..], codes[128..]);
}
