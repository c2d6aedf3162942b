//! Hand-worked cases of the caches.

use crate::Card;
use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use tandem_hal::{
    Cache, Compress, CompressIo, Elem, Enc, Fetch, FetchIo, Form, Locate, LocateIo,
    NormRotateStore, NormRotateStoreIo, Real, Record, RmsNorm, RmsNormIo, Rotate, RotateIo, Store,
    StoreIo, Sym,
};

fn cache(form: Form, width: u32, page_entries: u64) -> Cache {
    Cache { record: Record::new(form, width), page_entries, pages: Sym::Pages }
}

/// Stores `rows` at `at`, by every row of the operator alike.
fn store(to: &Buffer, x: Elem, rows: &[Vec<f32>], at: &[i32]) -> Buffer {
    let Enc::Record(record) = to.enc else { panic!("stores go to a cache") };
    let cache = Cache { record, page_entries: to.shape[1], pages: Sym::Pages };
    let shape = [rows.len() as u64, u64::from(record.width)];
    let rows = Buffer::of(Enc::Plain(x), &shape, &rows.concat());
    let at = Buffer::ints(&[at.len() as u64], at);
    let stored = Store::rows().iter().map(|row| {
        let mut cache_bytes = to.clone();
        let io = StoreIo { x: rows.tensor(), at: at.tensor(), cache: cache_bytes.tensor_mut() };
        alone(|c| (row.launch)(&Store { cache: cache.clone(), x }, io, c)).expect("cannot fail");
        cache_bytes
    });
    let [fast, slow] = stored.collect::<Vec<_>>().try_into().expect("two rows");
    assert_eq!(fast, slow);
    slow
}

fn empty(cache: &Cache, pages: u64) -> Buffer {
    Buffer::filled(Enc::Record(cache.record), &[pages, cache.page_entries], 0)
}

#[test]
fn rows_agree() {
    edges_agree::<Store>();
    draws_agree::<Store>(15);
    edges_agree::<Fetch>();
    draws_agree::<Fetch>(15);
    edges_agree::<Compress>();
    draws_agree::<Compress>(15);
    edges_agree::<Locate>();
    draws_agree::<Locate>(15);
    edges_agree::<NormRotateStore>();
    draws_agree::<NormRotateStore>(15);
}

/// The input of the formats' check values: `(-1)^i 0.1 (i + 1)`.
fn ramp() -> Vec<f32> {
    (0..32).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 } * 0.1 * (i + 1) as f32).collect()
}

#[test]
fn b1_to_b3_records_have_the_codes_of_their_rules() {
    let bytes = |form, x: &[f32]| {
        let to = empty(&cache(form, x.len() as u32, 1), 1);
        store(&to, Elem::Bf16, &[x.to_vec()], &[0]).codes
    };
    let mxfp8 = bytes(Form::Mxfp8, &ramp());
    assert_eq!(mxfp8[..8], [0x55, 0xdd, 0x62, 0xe5, 0x68, 0xea, 0x6b, 0xed]);
    assert_eq!(mxfp8[31..], [0xfd, 120]);
    let mxfp4 = bytes(Form::Mxfp4, &ramp());
    assert_eq!(mxfp4[..8], [0x80, 0x91, 0x91, 0xa1, 0xa2, 0xa2, 0xb3, 0xb3]);
    assert_eq!(mxfp4[16..], [127]);
    let nvfp4 = bytes(Form::Nvfp4, &ramp()[..16]);
    assert_eq!(nvfp4, [0x91, 0xb2, 0xc4, 0xd4, 0xe5, 0xe6, 0xe6, 0xf7, 0x29]);
    // The fnuz dialect keeps the codes and doubles the scale.
    let fnuz = bytes(Form::Mxfp8Fnuz, &ramp());
    assert_eq!(fnuz, [&mxfp8[..32], &[121]].concat());
}

#[test]
fn addresses_outside_store_nothing_and_fetch_zeros() {
    let cache = cache(Form::F32, 2, 2);
    let before = Buffer::of(Enc::Record(cache.record), &[2, 2], &[9.0; 8]);
    let rows: Vec<Vec<f32>> = (0..5).map(|i| vec![i as f32, -1.0]).collect();
    let at = [3, -1, 4, i32::MAX, 0];
    let after = store(&before, Elem::F32, &rows, &at);
    assert_eq!(after.values(), [4.0, -1.0, 9.0, 9.0, 9.0, 9.0, 0.0, -1.0]);

    let at = Buffer::ints(&[4], &[3, -1, 4, 0]);
    let mut y = Buffer::of(Enc::BF16, &[4, 2], &[7.0; 8]);
    let io = FetchIo { cache: after.tensor(), at: at.tensor(), y: y.tensor_mut() };
    alone(|c| Fetch { cache, y: Elem::Bf16 }.compute(io, c)).expect("cannot fail");
    assert_eq!(y.values(), [0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 4.0, -1.0]);
}

#[test]
fn quantising_records_take_bf16() {
    // 1.25 + 2^-12 rounds to 1.25 in bf16, which is a tie of E2M1 that goes down; unrounded it
    // would go up.
    let mut x = vec![1.25 + 2f32.powi(-12); 32];
    x[0] = 6.0;
    let cache = cache(Form::Mxfp4, 32, 1);
    let stored = store(&empty(&cache, 1), Elem::F32, &[x], &[0]);
    assert_eq!(stored.values()[1..], [1.0; 31]);
}

#[test]
fn nan_stays_in_its_block() {
    let mut x = vec![1.0; 64];
    x[40] = f32::NAN;
    let cache = cache(Form::Mxfp8, 64, 1);
    let values = store(&empty(&cache, 1), Elem::Bf16, &[x], &[0]).values();
    assert_eq!(values[..32], [1.0; 32]);
    assert!(values[32..].iter().all(|v| v.is_nan()));
}

#[test]
fn v4_records_keep_their_rotary_part() {
    let x: Vec<f32> = (0..128).map(|i| 1.0 + i as f32 / 128.0).collect();
    let cache = cache(Form::Fp8Rope, 128, 1);
    let values = store(&empty(&cache, 1), Elem::Bf16, std::slice::from_ref(&x), &[0]).values();
    assert_eq!(values[64..], x[64..]);
    // Three mantissa bits are left of the others.
    assert_eq!(values[..9], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(values[16], 1.125);
}

/// The latents of groups of two, for `[value | gate]` entries in the open cache.
fn compress(open: &Buffer, groups: &[[i32; 2]]) -> Vec<f32> {
    let Enc::Record(record) = open.enc else { panic!("open groups lie in a cache") };
    let tokens = groups.len() as u64;
    let members = Buffer::ints(&[tokens, 2], &groups.concat());
    let cache = Cache { record, page_entries: open.shape[1], pages: Sym::OpenPages };
    let mut y = Buffer::filled(Enc::BF16, &[tokens, u64::from(record.width) / 2], 0);
    let io = CompressIo { open: open.tensor(), members: members.tensor(), y: y.tensor_mut() };
    alone(|c| Compress { open: cache, ratio: 2 }.compute(io, c)).expect("cannot fail");
    y.values()
}

#[test]
fn c043_any_chunking_gives_the_same_rows() {
    let chunkings: [&[usize]; 5] =
        [&[7, 1], &[3, 4, 1], &[1, 1, 1, 1, 1, 1, 1, 1], &[2, 2, 3, 1], &[8]];
    let cache = Cache { pages: Sym::OpenPages, ..cache(Form::F32, 8, 8) };
    for chunks in chunkings {
        let (mut open, mut done, mut latents) = (empty(&cache, 1), 0, vec![]);
        for chunk in chunks {
            let tokens: Vec<i32> = (done..done + *chunk as i32).collect();
            let rows: Vec<Vec<f32>> =
                tokens.iter().map(|t| [[*t as f32; 4], [0.5; 4]].concat()).collect();
            open = store(&open, Elem::F32, &rows, &tokens);
            let groups: Vec<[i32; 2]> =
                tokens.iter().map(|t| if t % 2 == 1 { [t - 1, *t] } else { [-1, *t] }).collect();
            for (t, row) in tokens.iter().zip(compress(&open, &groups).chunks(4)) {
                match t % 2 {
                    1 => latents.push(row.to_vec()),
                    _ => assert_eq!(row, [0.0; 4], "token {t} is pending"),
                }
            }
            done += *chunk as i32;
        }
        assert_eq!(latents, [0.5f32, 2.5, 4.5, 6.5].map(|v| vec![v; 4]), "{chunks:?}");
    }
}

#[test]
fn c044_the_gate_is_a_softmax_per_channel() {
    let pool = |gates: [Vec<f32>; 2]| {
        let width = gates[0].len();
        let rows: Vec<f32> = [4.0, 6.0]
            .iter()
            .zip(gates)
            .flat_map(|(v, gate)| [vec![*v; width], gate].concat())
            .collect();
        let record = Record::new(Form::F32, 2 * width as u32);
        compress(&Buffer::of(Enc::Record(record), &[1, 2], &rows), &[[0, 1]])
    };
    let ln3 = 3f32.ln();
    assert_eq!(pool([vec![0.3], vec![0.3]]), [5.0]);
    assert_eq!(pool([vec![0.5], vec![0.5 + ln3]]), [5.5]);
    assert_eq!(pool([vec![1000.0, -1000.0], vec![1000.0, 0.0]]), [5.0, 6.0]);
    assert_eq!(pool([vec![0.0, 0.0, ln3], vec![0.0, ln3, 0.0]]), [5.0, 5.5, 4.5]);
    let odd = pool([vec![f32::NAN, 0.0], vec![0.0, 0.0]]);
    assert!(odd[0].is_nan() && odd[1] == 5.0, "NaN stays in its channel");
}

#[test]
fn a_group_with_a_member_outside_gives_zeros() {
    let record = Record::new(Form::F32, 2);
    let open = Buffer::of(Enc::Record(record), &[1, 2], &[f32::NAN, 0.0, 3.0, 0.0]);
    assert_eq!(compress(&open, &[[-1, 0], [0, 2], [1, 1], [1, -1]]), [0.0, 0.0, 3.0, 0.0]);
}

#[test]
fn entries_become_addresses_through_the_page_table() {
    let entry = Buffer::ints(&[4, 4], &[0, 3, 5, -1, 6, 8, 1, 2, 0, 1, 2, 3, 0, -7, 9, 2]);
    let sequence = Buffer::ints(&[4], &[0, 1, 2, -1]);
    let table = Buffer::ints(&[2, 2], &[7, 2, 4, -1]);
    let mut y = Buffer::filled(Enc::I32, &[4, 4], 0);
    let io = LocateIo {
        entry: entry.tensor(),
        sequence: sequence.tensor(),
        table: table.tensor(),
        y: y.tensor_mut(),
    };
    let descriptor = Locate { count: 4, page_entries: 4, pages: Sym::Pages };
    alone(|c| descriptor.compute(io, c)).expect("cannot fail");
    // Second sequence: entry 6 lies on a page it has not got, 8 past its table.
    let want = [[28, 31, 9, -1], [-1, -1, 17, 18], [-1; 4], [-1; 4]];
    assert_eq!(y.integers(), want.concat());
}

#[test]
fn the_fused_store_has_the_bits_of_its_steps() {
    let values: Vec<f32> = (0..4 * 128).map(|i| (i * 37 % 101) as f32 * 0.07 - 3.5).collect();
    let x = Buffer::of(Enc::BF16, &[4, 128], &values);
    let weight = Buffer::of(Enc::BF16, &[128], &values[100..228]);
    let position = Buffer::ints(&[4], &[0, 7, -1, 70_000]);
    let at = Buffer::ints(&[4], &[3, 0, 1, -1]);
    for form in [Form::Mxfp8, Form::Nvfp4, Form::F32] {
        let rotate = Rotate { heads: 1, head_dim: 128, ..crate::ops::norm::rotate::queries(true) };
        let cache = Cache { record: Record::new(form, 128), page_entries: 4, pages: Sym::Pages };
        let (mut fused, mut stepped) = (empty(&cache, 1), empty(&cache, 1));

        let mut row = x.clone();
        let io = RmsNormIo { x: x.tensor(), weight: weight.tensor(), y: row.tensor_mut() };
        let norm = RmsNorm { width: 128, eps: Real::new(1e-20) };
        alone(|c| norm.compute(io, c)).expect("cannot fail");
        let io = RotateIo { x: row.tensor_mut(), position: position.tensor() };
        alone(|c| rotate.compute(io, c)).expect("cannot fail");
        let io = StoreIo { x: row.tensor(), at: at.tensor(), cache: stepped.tensor_mut() };
        let store = Store { cache: cache.clone(), x: Elem::Bf16 };
        alone(|c| store.compute(io, c)).expect("cannot fail");

        let io = NormRotateStoreIo {
            x: x.tensor(),
            weight: weight.tensor(),
            position: position.tensor(),
            at: at.tensor(),
            cache: fused.tensor_mut(),
        };
        let d = NormRotateStore { eps: Real::new(1e-20), rotate, cache };
        alone(|c| d.compute(io, c)).expect("cannot fail");
        assert_eq!(fused, stepped, "{form:?}");
        assert!(fused.values().iter().any(|v| *v != 0.0));
    }
}
