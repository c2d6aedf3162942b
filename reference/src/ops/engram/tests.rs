//! Worked cases of the lookup and of the gate.

use super::gate::gate;
use crate::Card;
use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use tandem_hal::{
    Enc, EngramGate, EngramGateIo, EngramHash, EngramLookup, EngramLookupIo, Real, View,
};

#[test]
fn rows_agree() {
    edges_agree::<EngramHash>();
    draws_agree::<EngramHash>(40);
    edges_agree::<EngramLookup>();
    draws_agree::<EngramLookup>(20);
    edges_agree::<EngramGate>();
    draws_agree::<EngramGate>(30);
}

fn lookup(table: &Buffer, rows: &[i32], columns: u64) -> Vec<f32> {
    let (count, head_dim) = (table.shape[0], table.shape[1]);
    let tokens = rows.len() as u64 / columns;
    let rows = Buffer::ints(&[tokens, columns], rows);
    let mut y = Buffer::filled(Enc::BF16, &[tokens, columns * head_dim], 0xFF);
    let io = EngramLookupIo { row: rows.tensor(), table: table.tensor(), y: y.tensor_mut() };
    alone(|c| EngramLookup { rows: count, columns, head_dim }.compute(io, c)).expect("cannot fail");
    y.values()
}

#[test]
fn a_row_is_its_codes_times_its_scale() {
    let mut codes = vec![0u8; 32];
    codes[..6].copy_from_slice(&[0x38, 0x40, 0xC4, 0x01, 0x7E, 0x00]);
    let table = Buffer::raw(Enc::Q8, &[1, 32], &codes, &[0x78]);
    let row = lookup(&table, &[0], 1);
    assert_eq!(row[..6], [0.0078125, 0.015625, -0.0234375, 1.525_878_9e-5, 3.5, 0.0]);
    // Scale byte 0 is 2^-127, and 255 spoils its block.
    let codes = [vec![0x7E; 32], vec![0x38; 32]].concat();
    let table = Buffer::raw(Enc::Q8, &[1, 64], &codes, &[0, 255]);
    let row = lookup(&table, &[0], 1);
    assert_eq!(row[0], 448.0 * 2f32.powi(-127));
    assert!(row[32..].iter().all(|v| v.is_nan()));
}

#[test]
fn c050_offsets_pass_32_bits_and_rows_end() {
    // The last of 384,006,168 rows starts 256 bytes before the end of the codes.
    let (codes, scales) = View::size(Enc::Q8, &[384_006_168, 256]).expect("fits 64 bits");
    assert_eq!([codes - 256, scales - 8], [98_305_578_752, 8 * 384_006_167]);
    let codes: Vec<u8> = [0x38u8, 0x40].iter().flat_map(|c| vec![*c; 32]).collect();
    let table = Buffer::raw(Enc::Q8, &[2, 32], &codes, &[127, 127]);
    let looked_up = lookup(&table, &[1, 0, 2, -1, i32::MAX, 1], 2);
    let want = [2.0f32, 1.0, 0.0, 0.0, 0.0, 2.0];
    assert_eq!(looked_up, want.iter().flat_map(|v| vec![*v; 32]).collect::<Vec<_>>());
}

#[test]
fn c051_gate_values() {
    let values = [0.0, -0.0, 4.0, -4.0, 1e-9, -1e-9].map(gate);
    let want = [0.50025, 0.49975, 0.8807971, 0.1192029, 0.50025, 0.49975];
    for (got, want) in values.iter().zip(want) {
        assert!((got - want).abs() < 5e-8, "{got} is not {want}");
    }
    assert!(gate(f64::NAN).is_nan());
}

/// The streams after the gate; two of them, four wide.
fn inject(h: [f32; 8], kv: [f32; 12], q: [f32; 8], k: [f32; 8], masked: i32) -> Vec<f32> {
    let d = EngramGate { streams: 2, width: 4, eps: Real::new(1e-20) };
    let weights = [q, k].map(|w| Buffer::of(Enc::BF16, &[2, 4], &w));
    let (kv, masked) = (Buffer::of(Enc::BF16, &[1, 12], &kv), Buffer::ints(&[1], &[masked]));
    let results = EngramGate::rows().iter().map(|row| {
        let mut streams = Buffer::of(Enc::BF16, &[1, 2, 4], &h);
        let io = EngramGateIo {
            kv: kv.tensor(),
            q_weight: weights[0].tensor(),
            k_weight: weights[1].tensor(),
            masked: masked.tensor(),
            streams: streams.tensor_mut(),
        };
        alone(|c| (row.launch)(&d, io, c)).expect("cannot fail");
        streams
    });
    let [fast, slow] = results.collect::<Vec<_>>().try_into().expect("two rows");
    assert_eq!(fast, slow);
    slow.values()
}

#[test]
fn a_worked_gate() {
    let h = [1.0, -2.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0];
    let key = [0.5, 0.25, -1.0, 2.0, 1.0, 1.0, 1.0, 1.0];
    let value = [0.5, -1.0, 2.0, 0.125];
    let q = [1.0, 1.5, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0];
    let k = [1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0];
    let mut kv = [0.0; 12];
    kv[..8].copy_from_slice(&key);
    kv[8..].copy_from_slice(&value);
    let want = [1.328125, -2.65625, 1.8046875, 3.078125, 0.25, -0.5, 1.0, 0.0625];
    assert_eq!(inject(h, kv, q, k, 0), want);
    // A masked row keeps its bits whatever the value is.
    kv[8..].copy_from_slice(&[f32::NAN, f32::INFINITY, 1.0, 1.0]);
    assert_eq!(inject(h, kv, q, k, 1), h);
}
