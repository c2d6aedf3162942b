//! Card of [`SparseAttention`].

use super::softmax::Softmax;
use crate::{
    Card, Choices, Compute, Context, Host, Tensor, Tolerance, blocked_row, scalar_row, simd, sum,
    threads,
};
use std::collections::HashMap;
use std::ops::Range;
use tandem_hal::num::bf16;
use tandem_hal::{Cache, Extents, Form, Real, Record, Result, Row, SparseAttention, Sym};

/// Rounding error of a score over the magnitude of its dot product: sums in fp32, promoted at
/// least every 32 products, then scale and rounding.
fn score_gamma(d: &SparseAttention) -> f64 {
    (d.head_dim.div_ceil(32) as f64 + 8.0) * f64::from(f32::EPSILON)
}

/// A weight next to the middle between two numbers of bf16 may be either, which are 2^-7 apart at most.
/// The sums over entries run in fp32.
fn value_gamma(d: &SparseAttention) -> f64 {
    let entries = (d.window_count + d.selected_count) as f64;
    2f64.powi(-7) + (entries / 16.0 + 8.0) * f64::from(f32::EPSILON)
}

fn log_gamma(d: &SparseAttention) -> f64 {
    let entries = (d.window_count + d.selected_count) as f64;
    score_gamma(d) + (entries / 32.0 + 8.0) * f64::from(f32::EPSILON)
}

/// The entries that some rows list, each decoded once however many rows list it.
struct Listed {
    dim: usize,
    keys: Vec<f32>,
    /// Per row, which keys it lists: window first, what is not there left out.
    rows: Vec<Vec<usize>>,
}

impl Listed {
    fn of(d: &SparseAttention, io: &Host<'_, SparseAttention>, rows: Range<usize>) -> Listed {
        let mut listed = Listed { dim: d.head_dim as usize, keys: vec![], rows: vec![] };
        let mut known: HashMap<(usize, i32), Option<usize>> = HashMap::new();
        let parts = [(&io.window, &io.window_at), (&io.selected, &io.selected_at)];
        for t in rows {
            let mut row = vec![];
            for (part, (cache, at)) in parts.iter().enumerate().filter(|(_, p)| !p.1.is_empty()) {
                row.extend((0..at.cols()).filter_map(|i| {
                    let at = at.int(t, i);
                    *known.entry((part, at)).or_insert_with(|| listed.decode(cache, at))
                }));
            }
            listed.rows.push(row);
        }
        listed
    }

    fn decode(&mut self, cache: &Tensor<'_>, at: i32) -> Option<usize> {
        let start = self.keys.len();
        self.keys.resize(start + self.dim, 0.0);
        if cache.entry_into(at, &mut self.keys[start..]) {
            return Some(start / self.dim);
        }
        self.keys.truncate(start);
        None
    }

    /// The keys of each row in list order.
    fn rows(&self) -> impl Iterator<Item = Vec<&[f32]>> {
        let key = |i: &usize| &self.keys[i * self.dim..][..self.dim];
        self.rows.iter().map(move |row| row.iter().map(key).collect())
    }
}

/// One row's result: `[heads, head_dim]` values and `[heads]` log-sum-exps.
struct Attended {
    values: Vec<f64>,
    log_sums: Vec<f64>,
}

/// What a head that lists nothing gives.
fn nothing(sink: Option<f32>) -> f64 {
    sink.map_or(f64::NEG_INFINITY, f64::from)
}

fn sinks(sink: &Tensor<'_>, heads: usize) -> Vec<Option<f32>> {
    (0..heads).map(|h| (!sink.is_empty()).then(|| sink.at(0, h))).collect()
}

/// One head, in order: the definition.
fn head(q: &[f32], keys: &[&[f32]], scale: f64, sink: Option<f32>) -> (Vec<f64>, f64) {
    let mut y = vec![0.0; q.len()];
    if keys.is_empty() {
        return (y, nothing(sink));
    }
    let scores: Vec<f32> = keys.iter().map(|k| (sum::dot(q, k) * scale) as f32).collect();
    let softmax = Softmax::of(&scores, sink);
    for (key, weight) in keys.iter().zip(&softmax.weights) {
        let weight = f64::from(bf16::round_f32(*weight));
        for (y, k) in y.iter_mut().zip(*key) {
            *y += weight * f64::from(*k);
        }
    }
    y.iter_mut().for_each(|y| *y /= softmax.denominator);
    (y, softmax.log_sum())
}

/// Magnitudes of a head's values and of its log-sum: an error of a score moves its weight by as
/// much, relatively, and moves the denominator with it.
fn magnitudes(
    d: &SparseAttention,
    q: &[f32],
    keys: &[&[f32]],
    sink: Option<f32>,
) -> (Vec<f64>, f64) {
    let scale = f64::from(d.scale.value());
    let mut y = vec![0.0; q.len()];
    if keys.is_empty() {
        return (y, nothing(sink).abs());
    }
    let scores: Vec<f32> = keys.iter().map(|k| (sum::dot(q, k) * scale) as f32).collect();
    let softmax = Softmax::of(&scores, sink);
    // A score of minus infinity has no weight whatever the error.
    let finite = |term: f64| if term.is_finite() { term } else { 0.0 };
    let size = |k: &&[f32]| finite(sum::dot_magnitude(q, k) * scale.abs());
    let terms: Vec<f64> = keys.iter().map(size).collect();
    let largest = terms.iter().copied().fold(0.0, f64::max);
    let ratio = score_gamma(d) / value_gamma(d);
    for ((key, weight), term) in keys.iter().zip(&softmax.weights).zip(&terms) {
        let weight = f64::from(*weight) / softmax.denominator;
        for (y, k) in y.iter_mut().zip(*key) {
            *y += weight * f64::from(k.abs()) * (1.0 + ratio * (term + largest));
        }
    }
    let sink = sink.filter(|s| s.is_finite()).map_or(0.0, |s| f64::from(s.abs()));
    let log = libm::log(softmax.denominator).abs();
    (y, 1.0 + largest + f64::from(softmax.largest).abs() + log + sink)
}

fn scalar(d: &SparseAttention, mut io: Host<'_, SparseAttention>) {
    let (heads, scale) = (d.heads as usize, f64::from(d.scale.value()));
    if io.y.is_empty() {
        return;
    }
    let sinks = sinks(&io.sink, heads);
    for t in 0..io.window_at.rows() {
        let listed = Listed::of(d, &io, t..t + 1);
        let keys = listed.rows().next().expect("one row is listed");
        let (mut logs, mut log_magnitudes) = (vec![], vec![]);
        for (h, sink) in sinks.iter().enumerate() {
            let q = io.q.row(t * heads + h);
            let (y, log) = head(&q, &keys, scale, *sink);
            io.y.set_row(t * heads + h, &y);
            logs.push(log);
            if io.y.wants_magnitude() {
                let (y, log) = magnitudes(d, &q, &keys, *sink);
                io.y.set_magnitude(t * heads + h, &y);
                log_magnitudes.push(log);
            }
        }
        if !io.lse.is_empty() {
            io.lse.set_row(t, &logs);
            io.lse.set_magnitude(t, &log_magnitudes);
        }
    }
}

/// The sums of a head's values, four entries a pass; each sum still runs in list order.
#[inline(always)]
fn accumulate(keys: &[&[f32]], weights: &[f64], y: &mut [f64]) {
    let ((keys, last_keys), (weights, last_weights)) =
        (keys.as_chunks::<4>(), weights.as_chunks::<4>());
    for (keys, w) in keys.iter().zip(weights) {
        let [a, b, c, d] = keys;
        for (((y, a), b), (c, d)) in y.iter_mut().zip(*a).zip(*b).zip(c.iter().zip(*d)) {
            let sum = *y + w[0] * f64::from(*a) + w[1] * f64::from(*b);
            *y = sum + w[2] * f64::from(*c) + w[3] * f64::from(*d);
        }
    }
    for (key, w) in last_keys.iter().zip(last_weights) {
        for (y, k) in y.iter_mut().zip(*key) {
            *y += w * f64::from(*k);
        }
    }
}

/// Scores of all heads, head after head; a key is widened once for all.
#[inline(always)]
fn score_all(q: &[f64], keys: &[&[f32]], scale: f64, scores: &mut [f32]) {
    let (count, dim) = (keys.len(), keys[0].len());
    let mut wide = vec![0.0f64; dim];
    for (i, key) in keys.iter().enumerate() {
        wide.iter_mut().zip(*key).for_each(|(wide, k)| *wide = f64::from(*k));
        for (q, scores) in q.chunks_exact(dim).zip(scores.chunks_exact_mut(count)) {
            scores[i] = (sum::wide_dot(q, &wide) * scale) as f32;
        }
    }
}

/// All heads of a row; the bits of [`head`].
fn attend(q: &[f64], keys: &[&[f32]], scale: f64, sinks: &[Option<f32>]) -> Attended {
    let (heads, count) = (sinks.len(), keys.len());
    let mut values = vec![0.0; q.len()];
    if keys.is_empty() {
        return Attended { values, log_sums: sinks.iter().map(|s| nothing(*s)).collect() };
    }
    let mut scores = vec![0.0f32; heads * count];
    simd::vectorised(
        #[inline(always)]
        || score_all(q, keys, scale, &mut scores),
    );
    let of = |(scores, sink): (&[f32], &Option<f32>)| Softmax::of(scores, *sink);
    let softmaxes: Vec<Softmax> = scores.chunks_exact(count).zip(sinks).map(of).collect();
    simd::vectorised(
        #[inline(always)]
        || {
            for (softmax, y) in softmaxes.iter().zip(values.chunks_exact_mut(keys[0].len())) {
                let round = |w: &f32| f64::from(bf16::round_f32(*w));
                let weights: Vec<f64> = softmax.weights.iter().map(round).collect();
                accumulate(keys, &weights, y);
                y.iter_mut().for_each(|y| *y /= softmax.denominator);
            }
        },
    );
    Attended { values, log_sums: softmaxes.iter().map(Softmax::log_sum).collect() }
}

/// Neighbouring rows list much the same window, so pieces of rows share what they decode.
fn blocked(d: &SparseAttention, mut io: Host<'_, SparseAttention>) {
    let (heads, dim, scale) = (d.heads as usize, d.head_dim as usize, f64::from(d.scale.value()));
    if io.y.is_empty() {
        return;
    }
    let (sinks, tokens) = (sinks(&io.sink, heads), io.window_at.rows());
    let piece = (tokens / (4 * rayon::current_num_threads())).clamp(1, 32);
    let operations = piece * heads * dim * (d.window_count + d.selected_count) as usize / 3;
    let pieces = threads::collect(tokens.div_ceil(piece), operations, |i| {
        let rows = i * piece..((i + 1) * piece).min(tokens);
        let query = |t: usize| -> Vec<f64> {
            (0..heads).flat_map(|h| io.q.row(t * heads + h).into_owned()).map(f64::from).collect()
        };
        let listed = Listed::of(d, &io, rows.clone());
        let attend = |(t, keys): (usize, Vec<&[f32]>)| attend(&query(t), &keys, scale, &sinks);
        rows.zip(listed.rows()).map(attend).collect::<Vec<_>>()
    });
    for (t, row) in pieces.into_iter().flatten().enumerate() {
        for (h, values) in row.values.chunks(dim).enumerate() {
            io.y.set_row(t * heads + h, values);
        }
        if !io.lse.is_empty() {
            io.lse.set_row(t, &row.log_sums);
        }
    }
}

/// A case of `[window, selected]` record forms and list lengths; a length of 0 is no cache.
fn case(
    (heads, head_dim): (u64, u64),
    forms: [Form; 2],
    counts: [u64; 2],
    sink: bool,
    tokens: u64,
) -> (SparseAttention, Extents) {
    let cache = |form, page_entries, pages| Cache {
        record: Record::new(form, head_dim as u32),
        page_entries,
        pages,
    };
    let descriptor = SparseAttention {
        heads,
        head_dim,
        window: cache(forms[0], 32, Sym::WindowPages),
        window_count: counts[0],
        selected: (counts[1] > 0).then(|| cache(forms[1], 32, Sym::Pages)),
        selected_count: counts[1],
        scale: Real::new(1.0 / (head_dim as f32).sqrt()),
        sink,
        lse: sink,
    };
    let pages = |count: u64| count.div_ceil(32) + 1;
    let window = (Sym::WindowPages, pages(counts[0]));
    let extents = [(Sym::Tokens, tokens), window, (Sym::Pages, pages(counts[1]))];
    (descriptor, Extents::of(&extents))
}

impl Card for SparseAttention {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        scalar(self, io);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    blocked(d, io);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, operand: &str) -> Tolerance {
        let gamma = if operand == "lse" { log_gamma(self) } else { value_gamma(self) };
        Tolerance::Bound { gamma }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let size = (choices.between(1, 5), choices.pick(&[64, 128, 192, 512]));
        let window = choices.pick(&[Form::Mxfp8, Form::Mxfp8Fnuz, Form::Bf16, Form::F32]);
        let selected = choices.pick(&[Form::Nvfp4, Form::Mxfp8, Form::Mxfp4, Form::Fp8]);
        let counts = [choices.between(1, 40), choices.below(40)];
        case(size, [window, selected], counts, choices.flag(), choices.between(0, 4))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let v41 = [Form::Mxfp8, Form::Nvfp4];
        let mut cases = vec![
            case((4, 64), v41, [4, 0], true, 0),
            case((1, 64), v41, [1, 0], false, 1),
            case((3, 512), v41, [1, 1], true, 4),
            case((8, 512), v41, [128, 64], true, 2),
            case((2, 512), [Form::Fp8Rope; 2], [33, 31], true, 3),
            case((2, 128), [Form::Mxfp8Fnuz, Form::Mxfp8], [8, 8], false, 2),
        ];
        // More heads than any tile of them, and lists of which neither fills one.
        cases.push(case((72, 64), v41, [20, 40], true, 1));
        // Lists that end just before, at and after a block of sixteen or sixty-four (case C030).
        cases.extend([17, 64, 65].map(|n| case((1, 64), v41, [n, 0], true, 1)));
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        // Caches larger than any on the chip, so that no row finds what it lists there.
        let shape = |heads, selected, tokens| {
            let (d, extents) =
                case((heads, 512), [Form::Mxfp8, Form::Nvfp4], [128, selected], true, tokens);
            (d, extents.with(Sym::WindowPages, 1 << 14).with(Sym::Pages, 1 << 16))
        };
        // The heads of eight, of four and of one rank; layers with a window alone; prefill.
        let decode = [1, 6, 48, 128, 384];
        let mut cases: Vec<_> =
            [8, 16, 64].iter().flat_map(|h| decode.map(|t| shape(*h, 512, t))).collect();
        cases.extend(decode.map(|t| shape(64, 0, t)));
        cases.extend([4096, 8192].map(|t| shape(64, 512, t)));
        cases
    }
}
