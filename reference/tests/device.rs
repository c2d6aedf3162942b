//! The reference behind the contract: graphs, forks, layouts, ranks, misuse, loss.

use std::sync::Arc;
use tandem_hal::{
    Arena, Class, Device, Enc, EngramLookup, EngramLookupIo, Error, Extents, Lane, Mxfp8Linear,
    Mxfp8LinearIo, Operator, Options, Place, Provider, Side, Stream, Sym, View, Want, num::bf16,
};
use tandem_reference::{RefDevice, RefProvider, Setup, Weights};

const LINEAR: Mxfp8Linear = Mxfp8Linear { n: 40, k: 64 };

fn want(tokens: u64) -> Want {
    Want::row_invariant(Extents::of(&[(Sym::Tokens, tokens)]))
}

/// Operands of [`LINEAR`] with a weight in the device's layout.
struct Bench {
    device: Arc<dyn Device>,
    stream: Box<dyn Stream>,
    x: View,
    weight: View,
    y: View,
    none: View,
}

fn bench(device: RefDevice, tokens: u64) -> Bench {
    let device: Arc<dyn Device> = Arc::new(device);
    let stream = device.stream().expect("a stream");
    let mut arena = Arena::new(&*device, 1 << 18, "test").expect("memory");
    let x = arena.view(Enc::Q8, &[tokens, LINEAR.k]).expect("room");
    let plain = arena.view(Enc::MXFP8_TILE, &[LINEAR.n, LINEAR.k]).expect("room");
    let y = arena.view(Enc::BF16, &[tokens, LINEAR.n]).expect("room");
    let none = arena.view(Enc::U8, &[0]).expect("room");
    let bytes = |view: &View, seed: u64| -> Vec<u8> {
        let (codes, scales) = View::size(view.enc(), view.shape()).expect("small");
        let code = |i: u64| ((i * 37 + seed) % 0x70) as u8;
        (0..codes).map(code).chain((0..scales).map(|i| 120 + (i % 5) as u8)).collect()
    };
    stream.write(&x, &bytes(&x, 1)).expect("fits");
    stream.write(&plain, &bytes(&plain, 5)).expect("fits");
    let (layout, size) = device.layout(Class::Dense, plain.enc(), plain.shape());
    let weight = if layout == tandem_hal::Layout::Plain {
        plain
    } else {
        let packed = arena.private(plain.enc(), plain.shape(), layout, size).expect("room");
        device.pack(&plain, &packed, &*stream).expect("our layout");
        let back = arena.view(plain.enc(), plain.shape()).expect("room");
        device.unpack(&packed, &back, &*stream).expect("our layout");
        assert_eq!(stream.read(&back), stream.read(&plain), "pack then unpack is the identity");
        packed
    };
    Bench { device, stream, x, weight, y, none }
}

impl Bench {
    fn io(&self) -> Mxfp8LinearIo<&View, &View> {
        Mxfp8LinearIo { x: &self.x, weight: &self.weight, y: &self.y }
    }
    fn run(&self) -> Vec<u8> {
        let plan = self.device.plan(LINEAR, &want(8)).expect("a row");
        plan.launch(&*self.stream, &self.none, self.io()).expect("checked operands");
        self.stream.read(&self.y).expect("dense")
    }
}

#[test]
fn layouts_rows_and_threads_share_bits() {
    let forced = |row: &str| Options { overrides: vec![(Mxfp8Linear::ID.into(), row.into())] };
    let setups = [
        Setup::default(),
        Setup { weights: Weights::Plain, ..Setup::default() },
        Setup { weights: Weights::Scrambled, ..Setup::default() },
        Setup { options: forced("scalar"), ..Setup::default() },
        Setup { threads: Some(1), ..Setup::default() },
        Setup { threads: Some(2), ..Setup::default() },
    ];
    let results: Vec<_> = setups.map(|s| bench(RefDevice::with(&s), 5).run()).into_iter().collect();
    assert!(results.iter().all(|r| *r == results[0]));
    assert!(results[0].iter().any(|b| *b != 0xFF), "something was written");
}

#[test]
fn an_override_that_is_no_row_says_so() {
    let overrides = vec![(Mxfp8Linear::ID.into(), "warp".into())];
    let setup = Setup { options: Options { overrides }, ..Setup::default() };
    let device: Arc<dyn Device> = Arc::new(RefDevice::with(&setup));
    let Err(error) = device.plan(LINEAR, &want(1)) else { panic!("there is no such row") };
    assert!(error.to_string().contains("overridden by warp"), "{error}");
}

#[test]
fn a_graph_replays_on_changed_data_and_keeps_its_memory() {
    let b = bench(RefDevice::new(), 3);
    let eager = b.run();
    let plan = b.device.plan(LINEAR, &want(3)).expect("a row");
    let body = || plan.launch(&*b.stream, &b.none, b.io());
    let graph = b.stream.capture(&mut { body }).expect("captured");
    assert_eq!(graph.nodes(), 1);
    b.stream.fill(&b.y, 0).expect("dense");
    b.stream.replay(&*graph).expect("ours");
    assert_eq!(b.stream.read(&b.y).expect("dense"), eager);
    let mut bytes = b.stream.read(&b.x).expect("dense");
    bytes[..8].fill(0x78);
    b.stream.write(&b.x, &bytes).expect("fits");
    b.stream.replay(&*graph).expect("ours");
    assert_ne!(b.stream.read(&b.y).expect("dense"), eager);
    let Bench { device, stream, x, weight, y, none } = b;
    drop((x, weight, none, y));
    assert_eq!(device.ledger().len(), 1, "the graph holds the reservation");
    stream.replay(&*graph).expect("its memory is alive");
    drop(graph);
    assert!(device.ledger().is_empty());
}

#[test]
fn forks_join_or_the_capture_fails_and_frees_them() {
    let b = bench(RefDevice::new(), 2);
    let plan = b.device.plan(LINEAR, &want(2)).expect("a row");
    let side = b.device.stream().expect("a stream");
    let lane = Lane {
        stream: &*b.stream,
        workspace: &b.none,
        side: Some(Side { stream: &*side, workspace: &b.none }),
    };
    let joined = b.stream.capture(&mut || {
        lane.fork()?.run(&plan, b.io())?;
        lane.run(&plan, b.io())?;
        // A fork may wait for its origin again.
        lane.fork()?.run(&plan, b.io())?;
        lane.join()?;
        lane.join()
    });
    assert_eq!(joined.expect("joined").nodes(), 3);
    let reopened = b.stream.capture(&mut || {
        let beside = lane.fork()?;
        lane.join()?;
        beside.run(&plan, b.io())
    });
    assert!(matches!(reopened.err(), Some(Error::NotWhileCapturing { .. })));
    let alone = Lane { side: None, ..lane };
    let one = b.stream.capture(&mut || alone.fork()?.run(&plan, b.io()).and(alone.join()));
    assert_eq!(one.expect("nothing forked").nodes(), 1);
    let open = b.stream.capture(&mut || side.wait(&*b.stream));
    assert!(matches!(open.err(), Some(Error::NotWhileCapturing { .. })));
    side.sync().expect("the fork was freed");
    let outside = b.stream.capture(&mut || b.stream.wait(&*side));
    assert!(matches!(outside.err(), Some(Error::NotWhileCapturing { .. })));
    let inside = b.stream.capture(&mut || b.stream.sync());
    assert!(matches!(inside.err(), Some(Error::NotWhileCapturing { .. })));
    b.stream.sync().expect("no capture is left open");
}

#[test]
fn c019_misuse_is_a_typed_error_that_changes_no_byte() {
    let b = bench(RefDevice::new(), 3);
    let plan = b.device.plan(LINEAR, &want(2)).expect("a row");
    let before = b.stream.read(&b.y).expect("dense");
    let over = plan.launch(&*b.stream, &b.none, b.io()).expect_err("three tokens, two planned");
    assert!(matches!(over, Error::BadOperand { operand: "x", .. }), "{over}");
    let plan = b.device.plan(LINEAR, &want(3)).expect("a row");
    let swapped = Mxfp8LinearIo { x: &b.y, weight: &b.weight, y: &b.y };
    let format = plan.launch(&*b.stream, &b.none, swapped).expect_err("bf16 for FP8");
    assert!(matches!(format, Error::BadOperand { operand: "x", .. }), "{format}");
    let short = b.stream.write(&b.y, &[0; 3]).expect_err("three bytes");
    assert!(matches!(short, Error::BadOperand { .. }), "{short}");
    let other = bench(RefDevice::new(), 3);
    let foreign = plan.launch(&*other.stream, &b.none, b.io()).expect_err("another device");
    assert_eq!(foreign, Error::ForeignObject { what: "stream" });
    let theirs = Mxfp8LinearIo { x: &other.x, ..b.io() };
    let foreign = plan.launch(&*b.stream, &b.none, theirs).expect_err("another device");
    assert!(matches!(foreign, Error::BadOperand { operand: "x", .. }), "{foreign}");
    assert_eq!(b.stream.read(&b.y).expect("dense"), before);
    // Host memory is no view, so it does not compile. The next right launch works.
    assert_eq!(b.run(), other.run());
}

/// Only the rows that are written take memory.
#[test]
fn c050_rows_past_4_gib_are_looked_up() {
    const ROWS: u64 = (1 << 24) + 2;
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let stream = device.stream().expect("a stream");
    let shape = [ROWS, 256];
    for place in [Place::Device, Place::Pinned] {
        let bytes = View::reserved_bytes(Enc::Q8, &shape);
        let reserved = device.allocate(bytes, place, "table").expect("untouched pages");
        let table = View::dense(&reserved, 0, Enc::Q8, &shape).expect("fits");
        let far = [8_388_607, 8_388_608, 16_777_216, ROWS - 1];
        for ((at, row), code) in (0..).zip(far).zip([0x38, 0x40, 0x44, 0x48]) {
            let view = table.rows(row..row + 1).expect("inside");
            assert_eq!(view.offset() - table.offset(), row * 256);
            assert_eq!(view.scale_offset() - table.scale_offset(), row * 8);
            let scales = [127 + at; 8];
            stream.write(&view, &[&[code; 256][..], &scales].concat()).expect("dense");
        }
        assert_eq!(far.map(|row| row * 256)[..3], [2_147_483_392, 2_147_483_648, 4_294_967_296]);
        let lookup = EngramLookup { rows: ROWS, columns: 6, head_dim: 256 };
        let plan = device.plan(lookup, &want(1)).expect("a row");
        let mut arena = Arena::new(&*device, 1 << 16, "test").expect("memory");
        let row = arena.view(Enc::I32, &[1, 6]).expect("room");
        let y = arena.view(Enc::BF16, &[1, 6 * 256]).expect("room");
        let asked = far.map(|row| row as i32).into_iter().chain([ROWS as i32, 0]);
        let asked: Vec<u8> = asked.flat_map(i32::to_le_bytes).collect();
        stream.write(&row, &asked).expect("dense");
        let io = EngramLookupIo { row: &row, table: &table, y: &y };
        plan.launch(&*stream, &View::absent(Enc::U8), io).expect("checked operands");
        // Codes 1, 2, 3 and 4 under scales 1, 2, 4 and 8; the row past the end is zeros, and so is
        // one that nothing was written to.
        let want = [1.0f32, 4.0, 12.0, 32.0, 0.0, 0.0];
        let want = want.map(|value| bf16::from_f32(value).to_le_bytes().repeat(256)).concat();
        assert_eq!(stream.read(&y).expect("dense"), want, "{place:?}");
    }
}

#[test]
fn memory_is_counted_and_refused() {
    let setup = Setup { memory_bytes: Some(1 << 20), ..Setup::default() };
    let device = RefDevice::with(&setup);
    let held = device.allocate(1 << 19, Place::Device, "half").expect("fits");
    let error = device.allocate(1 << 20, Place::Device, "all").expect_err("half is taken");
    let wanted = Error::OutOfMemory { wanted: 1 << 20, free: 1 << 19, purpose: "all".into() };
    assert_eq!(error, wanted);
    device.allocate(1 << 20, Place::Pinned, "host").expect("not device memory");
    drop(held);
    device.allocate(1 << 20, Place::Device, "all").expect("fits now");
}

#[test]
fn a_lost_device_stays_lost() {
    let fault: Arc<tandem_reference::Around> =
        Arc::new(|_, _, _, _, _| Err(Error::DeviceLost { last_op: String::new() }));
    let b = bench(RefDevice::with(&Setup { around: Some(fault), ..Setup::default() }), 1);
    let plan = b.device.plan(LINEAR, &want(1)).expect("a row");
    let lost = Error::DeviceLost { last_op: "gemm.mxfp8{n=40,k=64}".into() };
    assert_eq!(plan.launch(&*b.stream, &b.none, b.io()), Err(lost.clone()));
    assert_eq!(b.stream.read(&b.y), Err(lost.clone()));
    assert_eq!(b.stream.sync(), Err(lost.clone()));
    assert!(matches!(b.device.allocate(1, Place::Device, "x"), Err(Error::DeviceLost { .. })));
}

#[test]
fn the_provider_opens_groups_and_pretends() {
    let provider = RefProvider::default();
    assert_eq!(provider.devices().expect("always").len(), 1);
    assert_eq!(provider.open(&[0, 1], &Options::default()).expect("any number").len(), 2);
    assert!(provider.open(&[], &Options::default()).is_err());
    let null: Arc<dyn Device> = Arc::new(provider.pretend("reference").expect("itself"));
    null.plan(LINEAR, &want(1)).expect("the same rows");
    assert!(provider.pretend("h100").is_err());
}

#[test]
fn absent_operands_take_absent_views_only() {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let stream = device.stream().expect("a stream");
    let linear = tandem_hal::Bf16Linear { n: 1, k: 2, bias: false };
    let plan = device.plan(linear, &want(1)).expect("a row");
    let mut arena = Arena::new(&*device, 4096, "test").expect("memory");
    let mut row = |shape: &[u64]| {
        let view = arena.view(Enc::BF16, shape).expect("room");
        let ones = bf16::from_f32(1.0).to_le_bytes().repeat(shape.iter().product::<u64>() as usize);
        stream.write(&view, &ones).expect("fits");
        view
    };
    let (x, plain, bias, y) = (row(&[1, 2]), row(&[1, 2]), row(&[1]), row(&[1, 1]));
    let (layout, bytes) = device.layout(Class::Dense, Enc::BF16, &[1, 2]);
    let weight = arena.private(Enc::BF16, &[1, 2], layout, bytes).expect("room");
    device.pack(&plain, &weight, &*stream).expect("ours");
    let none = View::absent(Enc::U8);
    let io = |bias| tandem_hal::Bf16LinearIo { x: &x, weight: &weight, bias, y: &y };
    let refused = plan.launch(&*stream, &none, io(&bias)).expect_err("no bias was planned");
    assert!(matches!(refused, Error::BadOperand { operand: "bias", .. }), "{refused}");
}
