//! Views: sizes, slices, overlap, and refusal of what does not fit.

use tandem_hal::{
    Arena, Capabilities, DeviceId, DeviceInfo, Dialect, Elem, Enc, Error, Form, Layout, Record,
    View, null::Null,
};

fn device(memory_bytes: u64) -> Null {
    let capabilities =
        Capabilities { dialect: Dialect::Fn, fp4_units: false, shared_memory_bytes: 0, lanes: 1 };
    let info = DeviceInfo {
        id: DeviceId(7),
        name: "null".into(),
        board: "null".into(),
        arch: "any".into(),
        memory_bytes,
        capabilities,
        rank: 0,
        ranks: 1,
    };
    Null::new(info, None)
}

fn arena() -> Arena {
    Arena::new(&device(1 << 44), 1 << 43, "test").expect("a null device has room")
}

#[test]
fn sizes_count_codes_and_scales() {
    assert_eq!(View::size(Enc::BF16, &[3, 5]), Some((30, 0)));
    assert_eq!(View::size(Enc::Q8, &[3, 64]), Some((192, 6)));
    assert_eq!(View::size(Enc::MXFP8_TILE, &[33, 64]), Some((33 * 64, 4)), "ragged tiles");
    assert_eq!(View::size(Enc::MXFP4, &[2, 4, 64]), Some((256, 16)));
    assert_eq!(View::size(Enc::NVFP4, &[1, 32]), Some((16, 2)));
    assert_eq!(View::size(Enc::FP8_ROW128, &[2, 256]), Some((512, 16)));
    let record = Enc::Record(Record::new(Form::Mxfp8, 512));
    assert_eq!(View::size(record, &[2, 3]), Some((6 * 528, 0)));
    assert_eq!(View::size(Enc::F32, &[1 << 40, 1 << 40]), None, "overflow is no size");
    assert_eq!(View::reserved_bytes(Enc::F32, &[1 << 40, 1 << 40]), u64::MAX);
}

#[test]
fn slices_address_in_64_bits() {
    let table = arena().view(Enc::Q8, &[384_006_168, 256]).expect("98 GB on a null device");
    let last = table.rows(384_006_167..384_006_168).expect("inside");
    assert_eq!(last.offset() - table.offset(), 98_305_578_752);
    assert_eq!(last.scale_offset() - table.scale_offset(), 8 * 384_006_167);
    assert!(table.rows(384_006_168..384_006_169).is_err());
    let rows = arena().view(Enc::BF16, &[524_289, 4096]).expect("room");
    let cut = rows.rows(524_288..524_289).expect("inside");
    assert_eq!(cut.offset(), 2 * 2_147_483_648);
}

#[test]
fn rows_cols_and_axes() {
    let mut arena = arena();
    let x = arena.view(Enc::BF16, &[4, 96]).expect("room");
    let cut = x.cols(32..64).expect("plain");
    assert_eq!((cut.shape(), cut.stride(), cut.offset() - x.offset()), (&[4, 32][..], 96, 64));
    assert!(!cut.is_dense() && cut.rows(3..4).expect("inside").is_dense());
    let heads = x.split_last(3, 32).expect("96 = 3 x 32");
    assert_eq!(heads.shape(), &[4, 3, 32]);
    assert_eq!(heads.join_last().expect("dense").shape(), x.shape());
    assert!(x.split_last(5, 19).is_err() && cut.split_last(1, 32).is_err());
    let q = arena.view(Enc::Q8, &[4, 96]).expect("room");
    assert!(q.cols(0..32).is_err(), "columns of a block encoding");
    assert_eq!(q.split_last(3, 32).expect("whole blocks").shape(), &[4, 3, 32]);
    assert!(q.split_last(6, 16).is_err(), "cuts a scale block");
    let tile = arena.view(Enc::MXFP8_TILE, &[64, 64]).expect("room");
    assert!(tile.rows(16..32).is_err() && tile.rows(32..64).is_ok());
    let fp4 = arena.view(Enc::Plain(Elem::E2m1), &[3, 1]).expect("room");
    assert!(fp4.rows(1..2).is_err(), "half a byte");
}

#[test]
fn overlap_is_by_bytes() {
    let mut arena = arena();
    let x = arena.view(Enc::F32, &[4, 8]).expect("room");
    let y = arena.view(Enc::F32, &[4, 8]).expect("room");
    assert!(x.overlaps(&x) && !x.overlaps(&y));
    let (top, bottom) = (x.rows(0..2).expect("inside"), x.rows(2..4).expect("inside"));
    assert!(!top.overlaps(&bottom) && top.overlaps(&x));
    let none = x.rows(2..2).expect("empty");
    assert!(!none.overlaps(&x), "no bytes, no overlap");
}

#[test]
fn parts_are_the_only_way_into_a_private_layout() {
    let mut arena = arena();
    let layout = Layout::Private(9);
    let stacked = arena.private(Enc::MXFP4, &[4, 32, 64], layout, 4 * 1280).expect("room");
    let part = stacked.part(2).expect("four parts");
    assert_eq!((part.shape(), part.offset() - stacked.offset()), (&[32, 64][..], 2 * 1280));
    assert!(stacked.part(4).is_err() && stacked.rows(0..1).is_err());
    assert!(!stacked.part(1).expect("inside").overlaps(&part));
}

#[test]
fn an_arena_says_what_it_is_short_of() {
    let mut small = Arena::new(&device(1 << 20), 1024, "layers.3.attn").expect("room");
    small.view(Enc::U8, &[600]).expect("three quarters");
    let error = small.view(Enc::U8, &[600]).expect_err("one quarter is left");
    let wanted = Error::OutOfMemory { wanted: 768, free: 256, purpose: "layers.3.attn".into() };
    assert_eq!(error, wanted);
    assert!(small.view(Enc::F32, &[u64::MAX, 2]).is_err());
    assert!(Arena::new(&device(1 << 20), 1 << 21, "too much").is_err());
}
