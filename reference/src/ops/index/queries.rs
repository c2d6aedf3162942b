//! The arithmetic of index scores, for the cards that score.

use crate::ops::kv::locate::address;
use crate::{Tensor, simd, sum, threads};
use std::collections::BTreeMap;
use std::ops::Range;
use tandem_hal::Scores;
use tandem_hal::num::bf16;

/// Entries whose keys are decoded together.
const TILE: usize = 128;

/// What is scored against what; fields as the operands of [`tandem_hal::ScoresIo`].
pub(super) struct Queries<'a> {
    pub(super) q: Tensor<'a>,
    pub(super) weight: Tensor<'a>,
    pub(super) keys: Tensor<'a>,
    pub(super) sequence: Tensor<'a>,
    pub(super) table: Tensor<'a>,
    pub(super) visible: Tensor<'a>,
    /// Scores of a row.
    pub(super) entries: usize,
}

/// One row's queries, head after head and widened once for all keys, and the factors of the heads.
struct Query {
    row: usize,
    q: Vec<f64>,
    weights: Vec<f32>,
    visible: usize,
}

/// Scores of a range of entries for some rows.
struct Tile {
    first: usize,
    rows: Vec<(usize, Vec<f32>)>,
}

/// Row `t` of counts, lowered to `entries`.
pub(super) fn visible(counts: &Tensor<'_>, t: usize, entries: usize) -> usize {
    usize::try_from(counts.int(0, t)).unwrap_or(0).min(entries)
}

/// `Σ_h w_h max(0, q_h · k)`, in head order.
#[inline(always)]
fn score(q: &[f64], weights: &[f32], key: &[f64]) -> f32 {
    let mut sum = 0.0f64;
    for (q, w) in q.chunks_exact(key.len()).zip(weights) {
        let dot = sum::wide_dot(q, key) as f32;
        // Written so that NaN passes.
        let kept = if dot < 0.0 { 0.0 } else { dot };
        sum += f64::from(*w) * f64::from(kept);
    }
    sum as f32
}

impl Queries<'_> {
    /// Rows of queries.
    pub(super) fn rows(&self) -> usize {
        self.visible.cols()
    }

    fn query(&self, d: &Scores, t: usize) -> Query {
        let scale = f64::from(d.scale.value());
        let scaled = |w: &f32| bf16::round_f64(f64::from(*w) * scale);
        Query {
            row: t,
            q: self.q.row(t).iter().map(|q| f64::from(*q)).collect(),
            weights: self.weight.row(t).iter().map(scaled).collect(),
            visible: visible(&self.visible, t, self.entries),
        }
    }

    /// Decodes the key of an entry; false when it has none.
    fn key(&self, d: &Scores, sequence: i32, entry: usize, to: &mut [f64]) -> bool {
        let at = address(&self.table, sequence, entry as i64, d.keys.page_entries);
        let Some(key) = self.keys.entry(at) else { return false };
        to.iter_mut().zip(key).for_each(|(to, k)| *to = f64::from(k));
        true
    }

    /// Scores of row `t`, entry by entry: the definition.
    pub(super) fn scalar(&self, d: &Scores, t: usize) -> Vec<f32> {
        let Query { q, weights, visible, .. } = self.query(d, t);
        let mut key = vec![0.0; d.head_dim as usize];
        let mut scores = vec![f32::NEG_INFINITY; self.entries];
        for (j, to) in scores.iter_mut().enumerate().take(visible) {
            if self.key(d, self.sequence.int(0, t), j, &mut key) {
                *to = score(&q, &weights, &key);
            }
        }
        scores
    }

    /// Magnitudes of [`Queries::scalar`]: the heads' terms, each with the products of its dot.
    pub(super) fn magnitudes(&self, d: &Scores, t: usize) -> Vec<f64> {
        let Query { q, weights, visible, .. } = self.query(d, t);
        let dim = d.head_dim as usize;
        let mut key = vec![0.0; dim];
        let mut magnitudes = vec![0.0; self.entries];
        for (j, to) in magnitudes.iter_mut().enumerate().take(visible) {
            if self.key(d, self.sequence.int(0, t), j, &mut key) {
                let heads = q.chunks_exact(dim).zip(&weights);
                let size = |q: &[f64]| q.iter().zip(&key).map(|(q, k)| (q * k).abs()).sum::<f64>();
                let term = |(q, w): (&[f64], &f32)| f64::from(w.abs()) * size(q);
                *to = heads.map(term).sum();
            }
        }
        magnitudes
    }

    /// Scores of some rows, each sequence's keys decoded once; the bits of [`Queries::scalar`].
    pub(super) fn blocked(&self, d: &Scores, rows: Range<usize>) -> Vec<Vec<f32>> {
        let start = rows.start;
        let mut scores = vec![vec![f32::NEG_INFINITY; self.entries]; rows.len()];
        let mut sequences: BTreeMap<i32, Vec<Query>> = BTreeMap::new();
        for t in rows.clone() {
            sequences.entry(self.sequence.int(0, t)).or_default().push(self.query(d, t));
        }
        let longest = |queries: &[Query]| queries.iter().map(|q| q.visible).max().unwrap_or(0);
        let tiles: Vec<(i32, &[Query], usize)> = sequences
            .iter()
            .flat_map(|(s, q)| (0..longest(q)).step_by(TILE).map(|first| (*s, &**q, first)))
            .collect();
        let products = d.heads as usize * d.head_dim as usize * TILE * rows.len() / 8;
        let decoding = d.head_dim as usize * TILE;
        let tiles = threads::collect(tiles.len(), products + decoding, |i| {
            let (sequence, queries, first) = tiles[i];
            self.tile(d, sequence, queries, first)
        });
        for Tile { first, rows } in tiles {
            for (row, values) in rows {
                scores[row - start][first..first + values.len()].copy_from_slice(&values);
            }
        }
        scores
    }

    fn tile(&self, d: &Scores, sequence: i32, queries: &[Query], first: usize) -> Tile {
        let dim = d.head_dim as usize;
        let mut keys = vec![0.0; TILE * dim];
        let end = TILE.min(self.entries - first);
        let slots = keys.chunks_exact_mut(dim).enumerate().take(end);
        let there: Vec<bool> =
            slots.map(|(i, key)| self.key(d, sequence, first + i, key)).collect();
        let rows = queries.iter().filter(|q| q.visible > first).map(|query| {
            let count = (query.visible - first).min(end);
            let mut values = vec![f32::NEG_INFINITY; count];
            simd::vectorised(
                #[inline(always)]
                || {
                    for (i, to) in values.iter_mut().enumerate().filter(|(i, _)| there[*i]) {
                        *to = score(&query.q, &query.weights, &keys[i * dim..][..dim]);
                    }
                },
            );
            (query.row, values)
        });
        Tile { first, rows: rows.collect() }
    }
}
