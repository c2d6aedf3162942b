//! Worked cases of the conversions.

use crate::Card;
use crate::buffer::{Buffer, alone, edges_agree};
use tandem_hal::num::bf16;
use tandem_hal::{Cast, CastIo, Decode, DecodeIo, Enc, Operator, Requant, RequantIo};

/// Code and scale bytes of one row.
fn cast(to: Enc, values: &[f32]) -> Buffer {
    let shape = [1, values.len() as u64];
    let x = Buffer::of(Enc::BF16, &shape, values);
    let mut y = Buffer::filled(to, &shape, 0xFF);
    let io = CastIo { x: x.tensor(), y: y.tensor_mut() };
    let d = Cast { to, width: shape[1] };
    d.check().expect("a valid width");
    alone(|context| d.compute(io, context)).expect("checked operands");
    y
}

fn decode(from: Enc, x: &Buffer) -> Vec<f32> {
    let tensor = x.tensor();
    let (tokens, width) = (tensor.rows() as u64, tensor.cols() as u64);
    let mut y = Buffer::filled(Enc::BF16, &[tokens, width], 0xFF);
    let io = DecodeIo { x: tensor, y: y.tensor_mut() };
    let d = Decode { from, width };
    d.check().expect("a valid width");
    alone(|context| d.compute(io, context)).expect("checked operands");
    y.values()
}

fn requant(x: &Buffer, n: u64, k: u64, tile: u64) -> Buffer {
    let d = Requant { n, k, tile };
    let mut y = Buffer::filled(d.operands().y.enc, &[n, k], 0xAA);
    let io = RequantIo { x: x.tensor(), y: y.tensor_mut() };
    alone(|context| d.compute(io, context)).expect("checked operands");
    y
}

/// The input of the specification's check values B1 to B3.
fn alternating() -> Vec<f32> {
    let value = |i: u32| bf16::round_f64(f64::from(i + 1) * [0.1, -0.1][i as usize % 2]);
    (0..32).map(value).collect()
}

#[test]
fn every_row_has_the_bits_of_scalar() {
    edges_agree::<Cast>();
    edges_agree::<Decode>();
    edges_agree::<Requant>();
}

#[test]
fn b1_q8() {
    let y = cast(Enc::Q8, &alternating());
    assert_eq!(y.scales, [120]);
    assert_eq!(y.codes[..8], [0x55, 0xDD, 0x62, 0xE5, 0x68, 0xEA, 0x6B, 0xED]);
    assert_eq!(y.codes[31], 0xFD);
    let want = [0.1015625, -0.203125, 0.3125, -0.40625, 0.5, -0.625, 0.6875, -0.8125];
    assert_eq!(decode(Enc::Q8, &y)[..8], want);
}

#[test]
fn b2_mxfp4() {
    let y = cast(Enc::MXFP4, &alternating());
    assert_eq!(y.scales, [127]);
    assert_eq!(y.codes[..8], [0x80, 0x91, 0x91, 0xA1, 0xA2, 0xA2, 0xB3, 0xB3]);
    let codes: Vec<u8> = y.codes.iter().flat_map(|b| [b & 15, b >> 4]).collect();
    let want = [
        0, 8, 1, 9, 1, 9, 1, 10, 2, 10, 2, 10, 3, 11, 3, 11, 3, 12, 4, 12, 4, 12, 4, 12, 4, 13, 5,
        13, 5, 13, 5, 13,
    ];
    assert_eq!(codes, want);
}

#[test]
fn b3_nvfp4() {
    let y = cast(Enc::NVFP4, &alternating()[..16]);
    assert_eq!(y.scales, [0x29]);
    assert_eq!(y.codes, [0x91, 0xB2, 0xC4, 0xD4, 0xE5, 0xE6, 0xE6, 0xF7]);
    let largest = decode(Enc::NVFP4, &y)[15];
    assert_eq!(largest, -6.0 * 0.28125);
}

#[test]
fn nvfp4_divides_truly() {
    // s = 0.029296875: a reciprocal moves the tie x / s = 1.25 from 1 to 1.5.
    let mut values = [0.0f32; 16];
    (values[0], values[1]) = (0.17578125, 0.036_621_094);
    let y = cast(Enc::NVFP4, &values);
    assert_eq!(decode(Enc::NVFP4, &y)[..2], [6.0 * 0.029296875, 0.029296875]);
}

#[test]
fn c002_ocp_weights_become_fnuz_without_loss() {
    let enc = Enc::MXFP8_TILE;
    let x = Buffer::raw(enc, &[1, 6], &[0x38, 0x7E, 0x01, 0x80, 0x7F, 0xFF], &[127]);
    let y = requant(&x, 1, 6, 32);
    assert_eq!((&y.codes[..], &y.scales[..]), (&[0x38, 0x7E, 0x01, 0, 0x80, 0x80][..], &[128][..]));
    assert_eq!(y.values()[..4], x.values()[..4]);
    assert_eq!(y.values()[..4], [1.0, 448.0, 2f32.powi(-9), 0.0]);
    // A scale that cannot double never wraps.
    for scale in [254, 255] {
        let top = Buffer::raw(enc, &[1, 1], &[0x38], &[scale]);
        assert_eq!(requant(&top, 1, 1, 32).scales, [255]);
    }
}

#[test]
fn requant_covers_ragged_tiles() {
    let codes: Vec<u8> = (0..40 * 70).map(|i| (i % 127) as u8).collect();
    let x = Buffer::raw(Enc::MXFP8_TILE, &[40, 70], &codes, &[100, 110, 120, 127, 0, 200]);
    let y = requant(&x, 40, 70, 32);
    assert_eq!(y.scales, [101, 111, 121, 128, 1, 201]);
    assert_eq!(y.values(), x.values());
}

#[test]
fn c003_each_dialect_reads_its_own() {
    let mut values = [0.0f32; 32];
    values[..3].copy_from_slice(&[1.0, -2.0, 0.5]);
    for enc in [Enc::Q8, Enc::Q8_FNUZ] {
        assert_eq!(decode(enc, &cast(enc, &values))[..3], [1.0, -2.0, 0.5], "{enc:?}");
    }
    let (fn_, fnuz) = (cast(Enc::Q8, &values), cast(Enc::Q8_FNUZ, &values));
    assert_eq!(fnuz.scales[0], fn_.scales[0] + 1);
}

#[test]
fn c001_negative_underflow_in_the_fnuz_dialect() {
    // 448 puts the scale at 1 (fnuz: 2), so the others are far below the smallest code.
    let mut values = [0.0f32; 32];
    values[..4].copy_from_slice(&[448.0, -1e-4, 1e-4, -0.0]);
    assert_eq!(cast(Enc::Q8_FNUZ, &values).codes[1..4], [0, 0, 0]);
    assert_eq!(cast(Enc::Q8, &values).codes[1..4], [0x80, 0, 0x80]);
}

#[test]
fn c005_the_scale_that_is_stored_quantises() {
    let y = cast(Enc::Q8, &[300.0; 32]);
    assert_eq!((y.scales[0], y.codes[0]), (127, 0x79));
    assert_eq!(decode(Enc::Q8, &y), [288.0; 32]);
}

#[test]
fn c007_ends_of_the_scale() {
    let block = |code: u8, scale: u8| {
        decode(Enc::Q8, &Buffer::raw(Enc::Q8, &[1, 32], &[code; 32], &[scale]))[0]
    };
    assert_eq!(block(0x40, 0), 2f32.powi(-126));
    assert_eq!(block(0x38, 0).to_bits(), 0x0040_0000);
    assert_eq!(block(0x38, 254), 2f32.powi(127));
    assert!(block(0x38, 255).is_nan());
}

#[test]
fn c008_a_block_of_zeros() {
    let values = [[0.0f32; 32], [1.0; 32]].concat();
    for (enc, scale, code) in [(Enc::Q8, 119, 0x78), (Enc::MXFP4, 125, 0x66)] {
        let y = cast(enc, &values);
        let half = y.codes.len() / 2;
        assert!(y.codes[..half].iter().all(|c| *c == 0), "{enc:?}");
        assert_ne!(y.scales[0], 255, "{enc:?}");
        assert_eq!((y.scales[1], y.codes[half]), (scale, code), "{enc:?}");
        assert_eq!(decode(enc, &y), values, "{enc:?}");
    }
    assert_eq!(decode(Enc::Q8_FNUZ, &cast(Enc::Q8_FNUZ, &values)), values);
    // No E4M3 scale is a sixth, so NVFP4 cannot hold one: the nearest scale gives 6 x 0.171875.
    let back = decode(Enc::NVFP4, &cast(Enc::NVFP4, &values));
    assert_eq!(back, [[0.0f32; 32], [1.03125; 32]].concat());
    let y = cast(Enc::FP8_ROW128, &[0.0; 128]);
    assert!(y.codes.iter().all(|c| *c == 0) && decode(Enc::FP8_ROW128, &y) == [0.0; 128]);
}

#[test]
fn c010_the_low_nibble_is_the_even_column() {
    let codes = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
    let x = Buffer::raw(Enc::NVFP4, &[1, 16], &codes, &[0x38]);
    let half = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0f32];
    let want = half.iter().copied().chain(half.iter().map(|v| -v));
    let bits = |v: f32| v.to_bits();
    assert!(decode(Enc::NVFP4, &x).into_iter().map(bits).eq(want.map(bits)));
}

#[test]
fn c011_fp4_ties_go_to_even() {
    // 6 puts the scale at one under both rules.
    let mut values = [0.0f32; 32];
    let ties = [6.0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 0.252, -0.25];
    values[..10].copy_from_slice(&ties);
    for enc in [Enc::MXFP4, Enc::NVFP4] {
        let y = cast(enc, &values);
        let codes: Vec<u8> = y.codes.iter().flat_map(|b| [b & 15, b >> 4]).take(10).collect();
        assert_eq!(codes, [7, 0, 2, 2, 4, 4, 6, 6, 1, 8], "{enc:?}");
    }
}

#[test]
fn c013_the_top_of_a_block_stays_within_half_a_step() {
    let mut values = [1.0f32; 32];
    values[0] = 480.0;
    for enc in [Enc::Q8, Enc::Q8_FNUZ] {
        let back = decode(enc, &cast(enc, &values));
        // 480 lies under the scale 2, where codes near 240 are 16 apart: half a step is 16.
        assert!((back[0] - 480.0).abs() <= 16.0, "{enc:?} gives {}", back[0]);
    }
}

#[test]
fn c015_a_ragged_last_block_is_refused() {
    for (to, width) in [(Enc::Q8, 48), (Enc::MXFP4, 48), (Enc::NVFP4, 24), (Enc::FP8_ROW128, 64)] {
        assert!(Cast { to, width }.check().is_err(), "{to:?} {width}");
    }
    assert!(Cast { to: Enc::MXFP8_TILE, width: 64 }.check().is_err());
}

#[test]
fn a_nan_takes_its_block_and_no_other() {
    let mut values = [1.0f32; 128];
    values[40] = f32::NAN;
    values[70] = f32::INFINITY;
    let blocks = [(Enc::Q8, 32), (Enc::MXFP4, 32), (Enc::NVFP4, 16), (Enc::Q8_FNUZ, 32)];
    for (enc, block) in blocks {
        let back = decode(enc, &cast(enc, &values));
        for (i, v) in back.iter().enumerate() {
            let lost = i / block == 40 / block || i / block == 70 / block;
            assert_eq!(v.is_nan(), lost, "{enc:?} element {i}");
        }
    }
}

#[test]
fn decoding_rounds_once() {
    // 1.125 times this scale lies just above a tie of bf16; the f32 product is the tie itself.
    let scale = f32::from_bits(0x3F64_71C8);
    assert_eq!(bf16::round_f32(1.125 * scale), 1.0);
    let x = Buffer::raw(Enc::FP8_ROW128, &[1, 128], &[0x39; 128], &scale.to_le_bytes());
    assert_eq!(decode(Enc::FP8_ROW128, &x), [1.0078125; 128]);
}
