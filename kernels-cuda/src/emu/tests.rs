use super::{EmuProvider, host};
use crate::{
    driver::{Argument, Shape, ViewArgument},
    launcher::{Launcher, Target as _},
};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use tandem_hal::{Embed, EmbedIo, Enc, Extents, Lane, Options, Place, Provider, Sym, View, Want};
use tandem_portable::{
    Peers,
    ops::comm::exchange::{Exchange, parts},
    window_bytes,
};

#[test]
fn launches_that_no_kernel_takes_are_refused() {
    let one = Shape::flat(1, 32);
    let refused = |kernel, arguments: &[Argument<'_>]| {
        host::OnHost.launch(kernel, &one, arguments).unwrap_err().to_string()
    };
    assert!(refused("rows_none__portable", &[]).ends_with("no kernel rows_none__portable"));
    let view = Argument::View(ViewArgument::default());
    for arguments in [vec![], vec![view; 6], vec![view; 3]] {
        let message = refused("rows_embed__portable", &arguments);
        assert!(message.contains("arguments of other sizes"), "{message}");
    }
}

#[test]
fn a_kernel_that_touches_no_memory_fails_alone() {
    let nowhere = Argument::View(ViewArgument { codes: 64, scales: 0, stride: 1 });
    let sizes = [Argument::U64(3), Argument::U64(2), Argument::U64(4)];
    for _ in 0..3 {
        let arguments = [&[nowhere; 3][..], &sizes].concat();
        let failed = host::OnHost.launch("rows_embed__portable", &Shape::flat(1, 32), &arguments);
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("touches memory that is not there"), "{message}");
    }
}

#[test]
fn the_row_runs_and_not_the_reference() {
    let device = EmuProvider.open(&[0], &Options::default()).unwrap().remove(0);
    let stream = device.stream().unwrap();
    let view = |enc, shape: &[u64]| {
        let bytes = View::reserved_bytes(enc, shape);
        let memory = device.allocate(bytes, Place::Device, "test").unwrap();
        View::dense(&memory, 0, enc, shape).unwrap()
    };
    let (id, table) = (view(Enc::I32, &[2]), view(Enc::BF16, &[3, 2]));
    let y = view(Enc::BF16, &[2, 2]);
    stream.write(&id, &[2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]).unwrap();
    stream.write(&table, &(0..12).collect::<Vec<u8>>()).unwrap();
    let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 2)]));
    let plan = device.plan(Embed { vocab: 3, width: 2 }, &want).unwrap();
    assert_eq!((plan.kernel(2), plan.bits()), ("portable", "portable"));
    let (workspace, before) = (View::absent(Enc::U8), host::launches());
    let io = EmbedIo { id: &id, table: &table, y: &y };
    Lane { stream: &*stream, workspace: &workspace, side: None }.run(&plan, io).unwrap();
    assert!(host::launches() > before);
    assert_eq!(stream.read(&y).unwrap(), [8, 9, 10, 11, 0, 0, 0, 0]);
}

/// Ranks of a group, in turns: each phase of an exchange on all of them before the next.
struct Ranks {
    windows: Vec<Vec<AtomicU64>>,
    statuses: Vec<AtomicU64>,
}

/// Elements that a rank sends at once, so that cases take several exchanges.
const CAPACITY: u64 = 8;

fn address<T>(of: &[T]) -> u64 {
    of.as_ptr().expose_provenance() as u64
}

impl Ranks {
    fn new(ranks: u64) -> Ranks {
        let words = window_bytes(ranks, CAPACITY) / 8;
        let zeros = |n: u64| (0..n).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Ranks { windows: (0..ranks).map(|_| zeros(words)).collect(), statuses: zeros(ranks) }
    }

    fn peers(&self, rank: usize) -> Peers {
        Peers {
            windows: self.windows.iter().map(|window| address(window)).collect(),
            rank: rank as u64,
            capacity: CAPACITY,
            patience_ns: 1,
            status: address(&self.statuses[rank..]),
        }
    }

    fn statuses(&self) -> Vec<u64> {
        self.statuses.iter().map(|status| status.load(Relaxed)).collect()
    }

    /// What a collective makes of values on every rank that takes part, `tokens` rows each.
    fn run(&self, collect: &'static str, x: &[Vec<f32>], tokens: &[u64]) -> Vec<Vec<f32>> {
        let (ranks, width) = (self.windows.len() as u64, 5);
        let columns = if collect == "comm_gather" { ranks * width } else { width };
        let outs: Vec<Vec<AtomicU32>> = tokens
            .iter()
            .map(|t| (0..t * columns).map(|_| AtomicU32::new(u32::MAX)).collect())
            .collect();
        let view = |codes, stride| ViewArgument { codes, scales: 0, stride };
        let launches: Vec<_> = (0..tokens.len())
            .map(|rank| {
                let (x, y) = (view(address(&x[rank]), width), view(address(&outs[rank]), columns));
                let exchange = Exchange { op: "test", collect, ranks, width, x, y };
                (exchange, self.peers(rank), Extents::of(&[(Sym::Tokens, tokens[rank])]))
            })
            .collect();
        let most = tokens.iter().max().map_or(0, |t| t * width);
        for i in 0..parts(most, CAPACITY).count() {
            for phase in 0..3 {
                for (exchange, peers, extents) in &launches {
                    let on = Launcher { target: &host::OnHost, extents, workspace: view(0, 0) };
                    let own = parts(extents.at(Sym::Tokens) * width, CAPACITY).nth(i);
                    let Some(part) = own else { continue };
                    let launched = match phase {
                        0 => exchange.push(peers, part, &on.plain()),
                        1 => exchange.wait(peers, &on.plain()),
                        _ => exchange.collect(peers, part, &on.plain()),
                    };
                    launched.unwrap();
                }
            }
        }
        let floats =
            |out: &Vec<AtomicU32>| out.iter().map(|w| f32::from_bits(w.load(Relaxed))).collect();
        outs.iter().map(floats).collect()
    }
}

/// Values of which no two sums are alike.
fn values(rank: usize, count: u64) -> Vec<f32> {
    (0..count).map(|i| (rank as f32 + 1.0) * 0.1 + i as f32 * 1.7).collect()
}

#[test]
fn ranks_sum_and_gather_in_their_order_time_after_time() {
    let group = Ranks::new(3);
    for tokens in [3, 0, 1, 7, 3] {
        let x: Vec<_> = (0..3).map(|rank| values(rank, tokens * 5)).collect();
        let sums: Vec<f32> = (0..x[0].len()).map(|i| x[0][i] + x[1][i] + x[2][i]).collect();
        assert_eq!(group.run("comm_sum", &x, &[tokens; 3]), vec![sums; 3]);
        let rows =
            (0..tokens as usize).flat_map(|t| x.iter().flat_map(move |x| x[t * 5..][..5].to_vec()));
        let rows: Vec<f32> = rows.collect();
        assert_eq!(group.run("comm_gather", &x, &[tokens; 3]), vec![rows; 3]);
    }
    assert_eq!(group.statuses(), [0; 3]);
}

#[test]
fn a_rank_that_does_not_come_or_comes_with_another_shape_breaks_the_group() {
    let x: Vec<_> = (0..3).map(|rank| values(rank, 15)).collect();
    let group = Ranks::new(3);
    group.run("comm_sum", &x, &[3, 3]);
    assert_eq!(group.statuses(), [3, 3, 0]);
    group.run("comm_sum", &x, &[3; 3]);
    assert_eq!(group.statuses(), [3; 3], "for ever after");
    let group = Ranks::new(3);
    group.run("comm_sum", &x, &[3, 2, 3]);
    assert!(group.statuses().iter().all(|status| *status != 0), "{:?}", group.statuses());
    let group = Ranks::new(2);
    group.run("comm_sum", &x, &[0, 3]);
    assert!(group.statuses().iter().all(|status| *status != 0), "{:?}", group.statuses());
}
