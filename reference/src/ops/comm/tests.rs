//! Collectives of several ranks.

use crate::buffer::Buffer;
use crate::{Card, Context, Group};
use std::time::Duration;
use tandem_hal::{AllGather, AllGatherIo, AllReduce, AllReduceIo, Enc, Error, Result};

/// What every rank has after `f` ran on all of them, `rows[r]` rows on rank r.
fn on_all<T: Send>(ranks: u32, f: impl Fn(&Context<'_>) -> T + Sync) -> Vec<T> {
    let groups = Group::of(ranks, Duration::from_secs(10));
    std::thread::scope(|s| {
        let run = |group: &Group| f(&Context { group });
        let handles: Vec<_> = groups.iter().map(|g| s.spawn(move || run(g))).collect();
        handles.into_iter().map(|h| h.join().expect("no rank panics")).collect()
    })
}

/// Two columns a row, `1000 rank + element`.
fn own(rank: u32, rows: u64) -> Buffer {
    let values: Vec<f32> = (0..2 * rows).map(|i| (1000 * u64::from(rank) + i) as f32).collect();
    Buffer::of(Enc::F32, &[rows, 2], &values)
}

fn reduce(x: &Buffer, ranks: u64, context: &Context<'_>) -> Result<Vec<f32>> {
    let mut y = Buffer::filled(Enc::F32, &x.shape, 0xA5);
    let io = AllReduceIo { x: x.tensor(), y: y.tensor_mut() };
    AllReduce { width: 2, ranks }.compute(io, context).map(|()| y.values())
}

fn gather(x: &Buffer, ranks: u64, context: &Context<'_>) -> Result<Vec<f32>> {
    let mut y = Buffer::filled(Enc::F32, &[x.shape[0], 2 * ranks], 0xA5);
    let io = AllGatherIo { x: x.tensor(), y: y.tensor_mut() };
    AllGather { width: 2, ranks }.compute(io, context).map(|()| y.values())
}

#[test]
fn sums_and_rows_are_the_same_on_every_rank() {
    let results = on_all(3, |c| {
        let x = own(c.group.rank(), 2);
        (reduce(&x, 3, c).expect("all arrive"), gather(&x, 3, c).expect("all arrive"))
    });
    for (sums, rows) in results {
        assert_eq!(sums, [3000.0, 3003.0, 3006.0, 3009.0]);
        let first = [0.0, 1.0, 1000.0, 1001.0, 2000.0, 2001.0];
        let second = [2.0, 3.0, 1002.0, 1003.0, 2002.0, 2003.0];
        assert_eq!(rows, [first, second].concat());
    }
}

#[test]
fn sums_run_in_rank_order_with_one_rounding() {
    let values = [2f32.powi(40), 1.0, -2f32.powi(40)];
    let results = on_all(3, |c| {
        let x = Buffer::of(Enc::F32, &[1, 2], &[values[c.group.rank() as usize]; 2]);
        reduce(&x, 3, c).expect("all arrive")
    });
    assert!(results.iter().all(|r| *r == [1.0; 2]), "f32 additions would lose the one");
}

#[test]
fn c028_ranks_without_rows_take_part() {
    let results = on_all(2, |c| {
        let empty = own(c.group.rank(), 0);
        let nothing = reduce(&empty, 2, c).expect("all arrive");
        (nothing, reduce(&own(c.group.rank(), 5), 2, c).expect("all arrive"))
    });
    assert!(results.iter().all(|(nothing, sums)| nothing.is_empty() && sums.len() == 10));
    // Five rows here and none there do not match: an error on both, no hang and no panic.
    let results = on_all(2, |c| reduce(&own(c.group.rank(), 5 * u64::from(c.group.rank())), 2, c));
    assert_eq!(results, [Err(Error::Peer { rank: 1 }), Err(Error::Peer { rank: 0 })]);
}

#[test]
fn a_group_of_another_size_is_refused() {
    let results = on_all(2, |c| gather(&own(c.group.rank(), 1), 3, c));
    assert!(results.iter().all(|r| matches!(r, Err(Error::BadDescriptor { .. }))));
}
