//! Hand-worked cases of the indexer.

use crate::Card;
use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use tandem_hal::{
    Blocks, Cache, Candidates, CandidatesIo, Enc, Form, Real, Record, Scores, ScoresIo, Select,
    SelectIo, Sym, TopK, TopKIo,
};

#[test]
fn rows_agree() {
    edges_agree::<Scores>();
    draws_agree::<Scores>(15);
    edges_agree::<TopK>();
    draws_agree::<TopK>(40);
    edges_agree::<Candidates>();
    draws_agree::<Candidates>(40);
    edges_agree::<Select>();
    draws_agree::<Select>(15);
}

/// The pick of every row of the operator, alike.
fn top_k(k: u64, rows: &[Vec<f32>], visible: &[i32], blocks: Option<(Blocks, &[i32])>) -> Vec<i32> {
    let (tokens, entries) = (rows.len() as u64, rows[0].len() as u64);
    let scores = Buffer::of(Enc::F32, &[tokens, entries], &rows.concat());
    let visible = Buffer::ints(&[tokens], visible);
    let (blocks, list) = match blocks {
        Some((of, list)) => (Some(of.clone()), Buffer::ints(&[tokens, of.count], list)),
        None => (None, Buffer::absent()),
    };
    let picks = TopK::rows().iter().map(|row| {
        let mut y = Buffer::filled(Enc::I32, &[tokens, k], 0);
        let io = TopKIo {
            scores: scores.tensor(),
            visible: visible.tensor(),
            blocks: list.tensor(),
            y: y.tensor_mut(),
        };
        let d = TopK { k, blocks: blocks.clone() };
        alone(|c| (row.launch)(&d, io, c)).expect("cannot fail");
        y.integers()
    });
    let [fast, slow] = picks.collect::<Vec<_>>().try_into().expect("two rows");
    assert_eq!(fast, slow);
    slow
}

fn candidates(count: u64, size: u64, scores: &[f32], visible: i32) -> Vec<i32> {
    let rows = Buffer::of(Enc::F32, &[1, scores.len() as u64], scores);
    let visible = Buffer::ints(&[1], &[visible]);
    let mut y = Buffer::filled(Enc::I32, &[1, count], 0);
    let io = CandidatesIo { scores: rows.tensor(), visible: visible.tensor(), y: y.tensor_mut() };
    let d = Candidates { blocks: Blocks { count, size } };
    alone(|c| d.compute(io, c)).expect("cannot fail");
    y.integers()
}

/// Operands of a scoring: one sequence per row, pages in reverse order.
struct Scored {
    d: Scores,
    q: Buffer,
    weight: Buffer,
    keys: Buffer,
    sequence: Buffer,
    table: Buffer,
    visible: Buffer,
}

const PAGE: u64 = 4;

/// `queries` of 32-wide heads against `keys`, all rows of one sequence.
fn scored(queries: &[Vec<f32>], weights: &[f32], keys: &[Vec<f32>], visible: &[i32]) -> Scored {
    let (tokens, dim) = (queries.len() as u64, 32);
    let heads = queries[0].len() as u64 / dim;
    let record = Record::new(Form::Mxfp4, dim as u32);
    let pages = (keys.len() as u64).div_ceil(PAGE);
    let mut cache = Buffer::filled(Enc::Record(record), &[pages, PAGE], 0xFF);
    for (j, key) in keys.iter().enumerate() {
        let (page, slot) = (pages - 1 - j as u64 / PAGE, j as u64 % PAGE);
        cache.tensor_mut().set_entry((page * PAGE + slot) as i32, key);
    }
    let table: Vec<i32> = (0..pages as i32).rev().collect();
    let keys = Cache { record, page_entries: PAGE, pages: Sym::Pages };
    Scored {
        d: Scores { heads, head_dim: dim, keys, scale: Real::new(0.0625) },
        q: Buffer::of(Enc::MXFP4, &[tokens, heads * dim], &queries.concat()),
        weight: Buffer::of(Enc::BF16, &[tokens, heads], &weights.repeat(queries.len())),
        keys: cache,
        sequence: Buffer::ints(&[tokens], &vec![0; queries.len()]),
        table: Buffer::ints(&[1, pages], &table),
        visible: Buffer::ints(&[tokens], visible),
    }
}

impl Scored {
    fn scores(&self, entries: u64) -> Vec<f32> {
        let mut y = Buffer::filled(Enc::F32, &[self.q.shape[0], entries], 0);
        let io = ScoresIo {
            q: self.q.tensor(),
            weight: self.weight.tensor(),
            keys: self.keys.tensor(),
            sequence: self.sequence.tensor(),
            table: self.table.tensor(),
            visible: self.visible.tensor(),
            y: y.tensor_mut(),
        };
        alone(|c| self.d.compute(io, c)).expect("cannot fail");
        y.values()
    }
    fn select(&self, k: u64, publish: Option<Blocks>, entries: u64) -> [Vec<i32>; 2] {
        let tokens = self.q.shape[0];
        let (none, axis) = (Buffer::absent(), Buffer::filled(Enc::U8, &[1, entries], 0));
        let count = publish.as_ref().map_or(0, |b| b.count);
        let mut published = Buffer::filled(Enc::I32, &[tokens, count], 0);
        let mut y = Buffer::filled(Enc::I32, &[tokens, k], 0);
        let io = SelectIo {
            q: self.q.tensor(),
            weight: self.weight.tensor(),
            keys: self.keys.tensor(),
            sequence: self.sequence.tensor(),
            table: self.table.tensor(),
            visible: self.visible.tensor(),
            blocks: none.tensor(),
            entries: axis.tensor(),
            published: published.tensor_mut(),
            y: y.tensor_mut(),
        };
        let d = Select { scores: self.d.clone(), top_k: TopK { k, blocks: None }, publish };
        alone(|c| (Select::rows()[0].launch)(&d, io, c)).expect("cannot fail");
        [published.integers(), y.integers()]
    }
}

/// A vector whose dot with a unit is `value`.
fn along(value: f32) -> Vec<f32> {
    let mut v = vec![0.0; 32];
    v[0] = value;
    v
}

#[test]
fn c036_the_relu_is_per_head_before_the_weights() {
    let query = [along(-3.0), along(2.0)].concat();
    let s = scored(std::slice::from_ref(&query), &[0.5, 0.25], &[along(1.0)], &[1]);
    assert_eq!(s.scores(2), [0.03125, f32::NEG_INFINITY]);
    // Weights may be negative; they are scaled and rounded to bf16 before they count.
    let s = scored(&[query], &[0.5, -1.0 / 3.0], &[along(1.0)], &[1]);
    let third = f32::from(half::bf16::from_f32(1.0 / 3.0));
    assert_eq!(s.scores(1), [-third * 0.0625 * 2.0]);
}

#[test]
fn entries_without_a_page_score_minus_infinity() {
    let keys: Vec<Vec<f32>> = (0..8).map(|j| along(j as f32 % 4.0)).collect();
    let mut s = scored(&[along(1.0), along(2.0)], &[16.0], &keys, &[99, 2]);
    let low = f32::NEG_INFINITY;
    let scores = s.scores(8);
    assert_eq!(scores[..8], [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(scores[8..], [0.0, 2.0, low, low, low, low, low, low]);
    s.table = Buffer::ints(&[1, 2], &[-1, 0]);
    assert_eq!(s.scores(8)[..8], [low, low, low, low, 0.0, 1.0, 2.0, 3.0]);
    s.sequence = Buffer::ints(&[2], &[1, -1]);
    assert_eq!(s.scores(8), [low; 16]);
}

#[test]
fn c037_k_larger_than_what_exists() {
    // Ratio 2 at positions 0, 1, 5 and ratio 1 at position 5.
    let counts = [0, 1, 3, 6];
    let picks = top_k(512, &vec![vec![1.0; 8]; 4], &counts, None);
    for (pick, count) in picks.chunks(512).zip(counts) {
        let want: Vec<i32> = (0..512).map(|i| if i < count { i } else { -1 }).collect();
        assert_eq!(pick, want);
    }
}

#[test]
fn c038_low_contrast_scores() {
    for n in [16448usize, 32768] {
        let all = [n as i32];
        let equal = vec![0.75f32; n];
        assert_eq!(
            top_k(512, std::slice::from_ref(&equal), &all, None),
            (0..512).collect::<Vec<_>>()
        );
        let rising: Vec<f32> = (0..n as u32).map(|i| f32::from_bits(0x3F00_0000 + i)).collect();
        let last: Vec<i32> = (n as i32 - 512..n as i32).collect();
        assert_eq!(top_k(512, &[rising], &all, None), last);
        let mut marked = equal;
        let places: Vec<i32> = (0..512).map(|i| (i * 7919 % n) as i32).collect();
        for place in &places {
            marked[*place as usize] = 0.750_000_06;
        }
        let mut want = places;
        want.sort_unstable();
        want.dedup();
        assert_eq!(want.len(), 512, "the places differ");
        assert_eq!(top_k(512, &[marked], &all, None), want);
    }
}

#[test]
fn c039_rows_that_see_nothing_pick_nothing() {
    let rows = vec![vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; 4];
    assert_eq!(top_k(3, &rows, &[0; 4], None), [-1; 12]);
    let picks = top_k(3, &rows, &[0, 5, 0, -3], None);
    assert_eq!(picks, [-1, -1, -1, 2, 3, 4, -1, -1, -1, -1, -1, -1]);
    assert_eq!(candidates(4, 2, &[1.0; 6], 0), [-1; 4]);
}

#[test]
fn c040_rows_taken_in_pieces_give_the_same_picks() {
    let real = |i: usize| ((i * 37) % 101) as f32 * 0.06 - 3.0;
    let vector = |s: usize, n: usize| -> Vec<f32> { (0..n).map(|i| real(s * 997 + i)).collect() };
    let queries: Vec<Vec<f32>> = (0..16).map(|t| vector(t, 128)).collect();
    let keys: Vec<Vec<f32>> = (0..64).map(|j| vector(j + 100, 32)).collect();
    let (weights, counts) = ([1.0, -0.5, 0.25, 2.0], vec![64; 16]);
    let whole = scored(&queries, &weights, &keys, &counts).select(8, None, 64);
    for pieces in [2, 16] {
        let parts = queries.chunks(16 / pieces).flat_map(|rows| {
            scored(rows, &weights, &keys, &counts[..rows.len()]).select(8, None, 64)[1].clone()
        });
        assert_eq!(parts.collect::<Vec<_>>(), whole[1], "{pieces} pieces");
    }
}

#[test]
fn ties_zeros_and_nan_have_their_places() {
    let row = vec![0.0, -0.0, f32::NAN, f32::NEG_INFINITY, 0.0, -1.0];
    let pick = |k| top_k(k, std::slice::from_ref(&row), &[6], None);
    assert_eq!(pick(2), [0, 1], "both zeros tie");
    assert_eq!(pick(4), [0, 1, 4, 5]);
    assert_eq!(pick(5), [0, 1, 3, 4, 5], "minus infinity comes before NaN");
    assert_eq!(pick(6), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn blocks_restrict_the_pick() {
    let row: Vec<f32> = (0..10).map(|i| i as f32).collect();
    let blocks = Blocks { count: 4, size: 4 };
    // Blocks outside and listed twice add nothing; the last block is cut.
    let list = [2, 0, 2, 9];
    let pick =
        |k, list: &[i32]| top_k(k, std::slice::from_ref(&row), &[10], Some((blocks.clone(), list)));
    assert_eq!(pick(3, &list), [3, 8, 9]);
    assert_eq!(pick(8, &list), [0, 1, 2, 3, 8, 9, -1, -1]);
    assert_eq!(pick(2, &[-1; 4]), [-1, -1]);
}

#[test]
fn the_newest_block_is_always_kept() {
    let low = f32::NEG_INFINITY;
    let scores = [5.0, 1.0, 7.0, 7.0, low, low, 7.0, 0.0, f32::NAN, f32::NAN, -9.0];
    assert_eq!(candidates(1, 2, &scores, 11), [5]);
    assert_eq!(candidates(2, 2, &scores, 11), [1, 5], "ties go to the lower block");
    assert_eq!(candidates(3, 2, &scores, 11), [1, 3, 5]);
    // Blocks of minus infinity and of NaN are dropped, unless the newest is one.
    assert_eq!(candidates(6, 2, &scores, 11), [0, 1, 3, 5, -1, -1]);
    assert_eq!(candidates(6, 2, &scores, 10), [0, 1, 3, 4, -1, -1]);
    assert_eq!(candidates(6, 2, &scores, 5), [0, 1, 2, -1, -1, -1]);
}

#[test]
fn selection_has_the_bits_of_its_steps() {
    let keys: Vec<Vec<f32>> = (0..24).map(|j| along(((j * 5) % 7) as f32)).collect();
    let s = scored(&[along(1.0), along(3.0)], &[16.0], &keys, &[23, 7]);
    let scores = s.scores(24);
    let blocks = Blocks { count: 3, size: 4 };
    let [published, picks] = s.select(5, Some(blocks), 24);
    let rows: Vec<Vec<f32>> = scores.chunks(24).map(<[f32]>::to_vec).collect();
    assert_eq!(picks, top_k(5, &rows, &[23, 7], None));
    let each = [candidates(3, 4, &rows[0], 23), candidates(3, 4, &rows[1], 7)];
    assert_eq!(published, each.concat());
}
