//! Worked cases of moving rows.

use crate::buffer::{Buffer, alone};
use crate::{Card, Tensor};
use std::sync::Arc;
use tandem_hal::{
    Alloc, DeviceId, Elem, Embed, EmbedIo, Enc, GatherRows, GatherRowsIo, Place, PlaceRows,
    PlaceRowsIo, View,
};

const STRAYS: [i32; 7] = [2, -1, 0, 3, i32::MIN, i32::MAX, 1];

fn indices(at: &[i32]) -> Buffer {
    let bytes: Vec<u8> = at.iter().flat_map(|i| i.to_le_bytes()).collect();
    Buffer::raw(Enc::I32, &[at.len() as u64], &bytes, &[])
}

/// Three rows of two: 1 2, 3 4, 5 6.
fn table() -> Buffer {
    Buffer::of(Enc::BF16, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

#[test]
fn an_id_outside_embeds_as_zeros() {
    let (id, table) = (indices(&STRAYS), table());
    let mut y = Buffer::filled(Enc::BF16, &[7, 2], 0xFF);
    let io = EmbedIo { id: id.tensor(), table: table.tensor(), y: y.tensor_mut() };
    alone(|context| Embed { vocab: 3, width: 2 }.compute(io, context)).expect("checked");
    let want = [5.0, 6.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 4.0];
    assert_eq!(y.values(), want);
}

#[test]
fn gathered_rows_keep_every_bit() {
    // A signalling NaN is a pattern like any other.
    let x = Buffer::raw(Enc::F32, &[2, 1], &[1, 0, 0xA0, 0x7F, 4, 3, 2, 1], &[]);
    let at = indices(&[1, 0, 2, -1]);
    let mut y = Buffer::filled(Enc::F32, &[4, 1], 0xFF);
    let io = GatherRowsIo { x: x.tensor(), at: at.tensor(), y: y.tensor_mut() };
    let d = GatherRows { elem: Elem::F32, width: 1 };
    alone(|context| d.compute(io, context)).expect("checked operands");
    assert_eq!(y.codes, [4, 3, 2, 1, 1, 0, 0xA0, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn c020_rows_are_gathered_from_strided_ones() {
    let wide = Buffer::of(Enc::BF16, &[2, 3], &[1.0, 2.0, f32::NAN, 3.0, 4.0, f32::NAN]);
    let dense = Tensor::dense(Enc::BF16, &[2, 2], &wide.codes, &[]);
    let at = indices(&[1, 0]);
    let mut y = Buffer::filled(Enc::BF16, &[2, 2], 0xFF);
    let x = Tensor { stride: 3, ..dense };
    let io = GatherRowsIo { x, at: at.tensor(), y: y.tensor_mut() };
    let d = GatherRows { elem: Elem::Bf16, width: 2 };
    alone(|context| d.compute(io, context)).expect("checked operands");
    assert_eq!(y.values(), [3.0, 4.0, 1.0, 2.0]);
}

#[test]
fn placing_leaves_other_rows_alone() {
    let (rows, at) = (table(), indices(&STRAYS));
    let mut x = Buffer::of(Enc::BF16, &[7, 2], &[9.0; 14]);
    let io = PlaceRowsIo { rows: rows.tensor(), at: at.tensor(), x: x.tensor_mut() };
    alone(|context| PlaceRows { width: 2 }.compute(io, context)).expect("checked operands");
    let want = [5.0, 6.0, 9.0, 9.0, 1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 3.0, 4.0];
    assert_eq!(x.values(), want);
}

#[test]
fn c021_row_offsets_above_two_gib() {
    let alloc = Arc::new(Alloc {
        id: 1,
        device: DeviceId(0),
        place: Place::Device,
        bytes: 1 << 40,
        purpose: "address arithmetic".into(),
        inner: Box::new(()),
    });
    // Bytes, so that offsets count elements.
    let offset = |width: u64, row: u64| {
        let view = View::dense(&alloc, 0, Enc::U8, &[1 << 20, width]).expect("fits");
        view.rows(row..row + 1).expect("within").offset()
    };
    assert_eq!(offset(5120, 419_430), 2_147_481_600);
    assert_eq!(offset(5120, 419_431), 2_147_486_720);
    assert_eq!(offset(4096, 524_288), 2_147_483_648);
}
