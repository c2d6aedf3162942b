//! Every way that numbers are stored, written on each device at hand and read on each: the bytes are the reference's,
//! whoever wrote them, and so is what they are read as. `docs/AMD.md` says what each target takes.

use std::sync::Arc;

use tandem_hal::num::bf16;
use tandem_hal::{
    Arena, Cache, Cast, CastIo, Decode, DecodeIo, Device, Elem, Enc, Error, Extents, Fetch,
    FetchIo, Form, Operator, Plan, Record, Requant, RequantIo, Result, Store, StoreIo, Stream, Sym,
    View, Want,
};
use tandem_tests::conformance::lane::Lane;

/// Rows that are stored, and entries of a page.
const ROWS: u64 = 48;
const PAGE: u64 = 16;
/// Bytes for the operands of one launch.
const ARENA_BYTES: u64 = 4 << 20;

/// A device with what runs an operator on it.
struct Bench {
    device: Arc<dyn Device>,
    stream: Box<dyn Stream>,
    arena: Arena,
}

impl Bench {
    fn new(lane: &Lane) -> Bench {
        let device = lane.open(1, "", None).expect("a lane's device opens").remove(0);
        let stream = device.stream().expect("a stream");
        let arena = Arena::new(&*device, ARENA_BYTES, "formats").expect("room");
        Bench { device, stream, arena }
    }

    fn view(&mut self, enc: Enc, shape: &[u64], bytes: Option<&[u8]>) -> View {
        let view = self.arena.view(enc, shape).expect("room in the arena");
        match bytes {
            Some(bytes) => self.stream.write(&view, bytes).expect("bytes of the shape"),
            None => self.stream.fill(&view, 0xA5).expect("a fill"),
        }
        view
    }

    /// A plan on this device's rows.
    fn plan<D: Operator>(&self, d: D) -> Result<Plan<D>> {
        let pages = ROWS / PAGE;
        let limits = Extents::of(&[(Sym::Tokens, ROWS), (Sym::Pages, pages)]);
        self.device.plan(d, &Want::row_invariant(limits))
    }

    fn run<D: Operator>(&mut self, plan: &Plan<D>, io: D::Io<&View, &View>) -> Result<()> {
        let workspace =
            self.arena.view(Enc::U8, &[plan.workspace_bytes()]).expect("room in the arena");
        plan.launch(&*self.stream, &workspace, io)?;
        self.stream.sync()
    }

    fn read(&self, view: &View) -> Vec<u8> {
        self.stream.read(view).expect("bytes")
    }
}

/// bf16 of every kind: all bit patterns by turns, but runs of tame numbers between them, so that blocks differ by more
/// than their NaN.
fn numbers(count: u64) -> Vec<u8> {
    let mut state = 1u32;
    let number = |i: u64| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let any = (state >> 16) as u16;
        let tame = bf16::from_f32((f32::from(any) - 32_768.0) / 4096.0);
        if (i / 64).is_multiple_of(5) { any } else { tame }.to_le_bytes()
    };
    (0..count).flat_map(number).collect()
}

/// All NaN of f32 alike.
fn f32s(bytes: &[u8]) -> Vec<u32> {
    let words =
        bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    words.map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
}

fn cache_of(record: Record) -> Cache {
    Cache { record, page_entries: PAGE, pages: Sym::Pages }
}

/// Every record, at a width that its readers in the model have.
fn records() -> Vec<Record> {
    let width = |form| match form {
        Form::Mxfp4 | Form::Fp8 => 128,
        _ => 512,
    };
    Form::ALL.iter().map(|form| Record::new(*form, width(*form))).collect()
}

fn addresses() -> Vec<u8> {
    (0..ROWS as i32).rev().flat_map(i32::to_le_bytes).collect()
}

/// The bytes of a cache that `kv.store` fills.
fn stored(lane: &Lane, record: Record) -> Result<Vec<u8>> {
    let (mut on, width) = (Bench::new(lane), u64::from(record.width));
    let x = on.view(Enc::BF16, &[ROWS, width], Some(&numbers(ROWS * width)));
    let at = on.view(Enc::I32, &[ROWS], Some(&addresses()));
    let cache = on.view(Enc::Record(record), &[ROWS / PAGE, PAGE], None);
    let plan = on.plan(Store { cache: cache_of(record), x: Elem::Bf16 })?;
    on.run(&plan, StoreIo { x: &x, at: &at, cache: &cache })?;
    Ok(on.read(&cache))
}

/// What `kv.fetch` reads of a cache with these bytes, whose view has the encoding of another record perhaps.
fn fetched(lane: &Lane, record: Record, held: Record, bytes: &[u8]) -> Result<Vec<u32>> {
    let (mut on, width) = (Bench::new(lane), u64::from(record.width));
    let cache = on.view(Enc::Record(held), &[ROWS / PAGE, PAGE], Some(bytes));
    let at = on.view(Enc::I32, &[ROWS], Some(&addresses()));
    let y = on.view(Enc::F32, &[ROWS, width], None);
    let plan = on.plan(Fetch { cache: cache_of(record), y: Elem::F32 })?;
    on.run(&plan, FetchIo { cache: &cache, at: &at, y: &y })?;
    Ok(f32s(&on.read(&y)))
}

/// Codes and scales that `quant.cast` makes.
fn cast(lane: &Lane, to: Enc, width: u64) -> Result<Vec<u8>> {
    let mut on = Bench::new(lane);
    let x = on.view(Enc::BF16, &[ROWS, width], Some(&numbers(ROWS * width)));
    let y = on.view(to, &[ROWS, width], None);
    let plan = on.plan(Cast { to, width })?;
    on.run(&plan, CastIo { x: &x, y: &y })?;
    Ok(on.read(&y))
}

/// What `quant.decode` reads of them, as bf16.
fn decoded(lane: &Lane, from: Enc, width: u64, bytes: &[u8]) -> Result<Vec<u16>> {
    let mut on = Bench::new(lane);
    let x = on.view(from, &[ROWS, width], Some(bytes));
    let y = on.view(Enc::BF16, &[ROWS, width], None);
    let plan = on.plan(Decode { from, width })?;
    on.run(&plan, DecodeIo { x: &x, y: &y })?;
    let bytes = on.read(&y);
    let codes = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    Ok(codes.map(|code| if bf16::to_f32(code).is_nan() { 0x7FC0 } else { code }).collect())
}

/// A weight's bytes in the dialect of gfx942.
fn requantised(lane: &Lane, tile: u64) -> Result<Vec<u8>> {
    let (mut on, enc) =
        (Bench::new(lane), |code| Enc::scaled(code, Elem::Ue8m0, tile as u16, tile as u16));
    let (n, k) = (256, 256);
    let codes = (0..n * k).map(|i| (i * 37 % 251 + i / 256) as u8);
    let scales = (0..n / tile * (k / tile)).map(|i| [0, 1, 127, 253, 254, 255][i as usize % 6]);
    let x = on.view(enc(Elem::E4m3Fn), &[n, k], Some(&codes.chain(scales).collect::<Vec<u8>>()));
    let y = on.view(enc(Elem::E4m3Fnuz), &[n, k], None);
    let plan = on.plan(Requant { n, k, tile })?;
    on.run(&plan, RequantIo { x: &x, y: &y })?;
    Ok(on.read(&y))
}

/// The reference, then every device at hand.
fn lanes() -> Vec<Lane> {
    let (lanes, skipped) = Lane::all();
    skipped.iter().for_each(|why| println!("{why}"));
    lanes.into_iter().filter(|lane| !lane.packed_only).collect()
}

/// That a device answers as the reference does; or that none of its rows takes the dialect of MI300's units.
fn answers<T: PartialEq>(answer: Result<T>, expected: &T, what: &str, lane: &Lane, is_fnuz: bool) {
    match answer {
        Ok(answer) => assert!(answer == *expected, "{what} by {}", lane.name),
        Err(Error::Unsupported { .. }) if is_fnuz => println!("{} takes no {what}", lane.name),
        Err(error) => panic!("{what} by {}: {error}", lane.name),
    }
}

#[test]
fn a_record_is_the_same_whoever_writes_and_whoever_reads_it() {
    let lanes = lanes();
    for record in records() {
        let bytes = stored(&lanes[0], record).expect("the reference stores all");
        let values = fetched(&lanes[0], record, record, &bytes).expect("and fetches it");
        assert!(values.iter().any(|bits| f32::from_bits(*bits).is_normal()), "{record:?}");
        let (what, is_fnuz) = (format!("{record:?}"), record.form == Form::Mxfp8Fnuz);
        for lane in &lanes[1..] {
            answers(stored(lane, record), &bytes, &what, lane, is_fnuz);
            answers(fetched(lane, record, record, &bytes), &values, &what, lane, is_fnuz);
        }
    }
}

#[test]
fn codes_are_the_same_whoever_makes_and_whoever_reads_them() {
    let (lanes, width) = (lanes(), 256);
    for enc in [Enc::Q8, Enc::Q8_FNUZ, Enc::MXFP4, Enc::NVFP4, Enc::FP8_ROW128] {
        let bytes = cast(&lanes[0], enc, width).expect("the reference makes all");
        let values = decoded(&lanes[0], enc, width, &bytes).expect("and reads them");
        let (what, is_fnuz) = (format!("{enc:?}"), enc == Enc::Q8_FNUZ);
        for lane in &lanes[1..] {
            answers(cast(lane, enc, width), &bytes, &what, lane, is_fnuz);
            answers(decoded(lane, enc, width, &bytes), &values, &what, lane, false);
        }
    }
    for tile in [32, 128] {
        let bytes = requantised(&lanes[0], tile).expect("the reference makes them");
        for lane in &lanes[1..] {
            answers(requantised(lane, tile), &bytes, "a requantised weight", lane, false);
        }
    }
}

#[test]
fn the_dialects_hold_the_same_values_and_are_never_taken_for_each_other() {
    let [own, other] = [Form::Mxfp8, Form::Mxfp8Fnuz].map(|form| Record::new(form, 512));
    let lanes = lanes();
    let [bytes, other_bytes] =
        [own, other].map(|record| stored(&lanes[0], record).expect("the reference stores all"));
    assert_ne!(bytes, other_bytes);
    let values = |record, bytes: &[u8]| {
        let values = fetched(&lanes[0], record, record, bytes).expect("fetched");
        let without_sign = |bits| if bits == (-0.0f32).to_bits() { 0 } else { bits };
        values.into_iter().map(without_sign).collect::<Vec<u32>>()
    };
    assert!(values(own, &bytes) == values(other, &other_bytes));
    for lane in &lanes {
        let refused = fetched(lane, own, other, &other_bytes);
        assert!(matches!(refused, Err(Error::BadOperand { .. })), "{}: {refused:?}", lane.name);
        let refused = fetched(lane, other, own, &bytes);
        let known = matches!(refused, Err(Error::BadOperand { .. } | Error::Unsupported { .. }));
        assert!(known, "{}: {refused:?}", lane.name);
    }
}
