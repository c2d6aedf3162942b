//! Collectives of two ranks: on two boards, or on one board that is both.

mod gpu;

use std::sync::{Arc, Barrier};
use tandem_cuda::CudaProvider;
use tandem_hal::{
    AllGather, AllGatherIo, AllReduce, AllReduceIo, Device, Enc, Error, Extents, Lane, Options,
    Place, Provider, Result, Stream, Sym, View, Want,
};

const RANKS: u64 = 2;
/// With `TOKENS` more elements than a rank sends at once.
const WIDTH: u64 = 513;
const TOKENS: u64 = 2100;

/// Both ranks, or none without a board.
fn group() -> Option<Vec<Arc<dyn Device>>> {
    gpu::device()?;
    let boards = CudaProvider.devices().unwrap().len();
    let ordinals = [0, u32::from(boards > 1)];
    Some(CudaProvider.open(&ordinals, &Options::default()).unwrap())
}

/// Does the same on every rank at once, each with its number.
fn on_all<T: Send>(group: &[Arc<dyn Device>], f: impl Fn(u64, &dyn Device) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let f = &f;
        let ranks = (0..).zip(group);
        let started: Vec<_> =
            ranks.map(|(rank, device)| scope.spawn(move || f(rank, &**device))).collect();
        started.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn view(device: &dyn Device, tokens: u64, width: u64) -> View {
    let bytes = View::reserved_bytes(Enc::F32, &[tokens, width]);
    let memory = device.allocate(bytes, Place::Device, "test").unwrap();
    View::dense(&memory, 0, Enc::F32, &[tokens, width]).unwrap()
}

/// What a rank gives in a round.
fn value(rank: u64, round: u64, i: u64) -> f32 {
    (i % 1009) as f32 * 0.37 + (rank * 3 + round) as f32
}

fn write(on: &dyn Stream, to: &View, of: impl Fn(u64) -> f32) {
    let count = to.bytes() / 4;
    on.write(to, &(0..count).flat_map(|i| of(i).to_le_bytes()).collect::<Vec<_>>()).unwrap();
}

fn read(on: &dyn Stream, from: &View) -> Vec<f32> {
    let bytes = on.read(from).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

fn want(tokens: u64) -> Want {
    Want::row_invariant(Extents::of(&[(Sym::Tokens, tokens)]))
}

#[test]
fn graphs_of_collectives_give_every_rank_the_same() {
    let Some(group) = group() else { return };
    assert_eq!(group[0].ledger()[0].purpose, "collectives");
    let ready = Barrier::new(RANKS as usize);
    let wrong = on_all(&group, |rank, device| {
        let reduce = device.plan(AllReduce { width: WIDTH, ranks: RANKS }, &want(TOKENS)).unwrap();
        let gather = device.plan(AllGather { width: WIDTH, ranks: RANKS }, &want(TOKENS)).unwrap();
        let (x, sum) = (view(device, TOKENS, WIDTH), view(device, TOKENS, WIDTH));
        let all = view(device, TOKENS, WIDTH * RANKS);
        let (stream, none) = (device.stream().unwrap(), View::absent(Enc::U8));
        let lane = Lane { stream: &*stream, workspace: &none, side: None };
        let graph = stream
            .capture(&mut || {
                lane.run(&reduce, AllReduceIo { x: &x, y: &sum })?;
                lane.run(&gather, AllGatherIo { x: &x, y: &all })
            })
            .unwrap();
        ready.wait();
        let mut wrong = 0;
        for round in 0..5 {
            write(&*stream, &x, |i| value(rank, round, i));
            // The ranks come at different times.
            std::thread::sleep(std::time::Duration::from_millis(rank * round));
            stream.replay(&*graph).unwrap();
            for (i, seen) in (0..).zip(read(&*stream, &sum)) {
                wrong += u64::from(seen != value(0, round, i) + value(1, round, i));
            }
            for (i, seen) in (0..).zip(read(&*stream, &all)) {
                let (token, column) = (i / (WIDTH * RANKS), i % (WIDTH * RANKS));
                let at = token * WIDTH + column % WIDTH;
                wrong += u64::from(seen != value(column / WIDTH, round, at));
            }
        }
        wrong
    });
    assert_eq!(wrong, [0, 0]);
}

#[test]
fn ranks_that_differ_are_told_on_all() {
    let Some(group) = group() else { return };
    let ready = Barrier::new(RANKS as usize);
    let reduce = |rank: u64, device: &dyn Device, width, ranks| -> Result<()> {
        let tokens = 3 + rank;
        let plan = device.plan(AllReduce { width, ranks }, &want(tokens)).unwrap();
        let (x, y) = (view(device, tokens, width), view(device, tokens, width));
        let (stream, none) = (device.stream().unwrap(), View::absent(Enc::U8));
        ready.wait();
        Lane { stream: &*stream, workspace: &none, side: None }
            .run(&plan, AllReduceIo { x: &x, y: &y })?;
        stream.sync()
    };
    let told = on_all(&group, |rank, device| reduce(rank, device, 8, RANKS));
    assert!(told.iter().all(|told| matches!(told, Err(Error::Peer { .. }))), "{told:?}");
    let told = on_all(&group, |rank, device| reduce(rank, device, 8, 3));
    assert!(told.iter().all(|told| matches!(told, Err(Error::BadDescriptor { .. }))), "{told:?}");
}
