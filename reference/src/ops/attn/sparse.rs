//! Card of [`SparseAttention`].

use super::softmax::Softmax;
use crate::{
    Card, Choices, Compute, Context, Host, Tensor, Tolerance, blocked_row, scalar_row, simd, sum,
    threads,
};
use tandem_hal::num::bf16;
use tandem_hal::{Cache, Extents, Form, Real, Record, Result, Row, SparseAttention, Sym};

/// Rounding error of a score over the magnitude of its dot product: sums in fp32, promoted at
/// least every 32 products, then scale and rounding.
fn score_gamma(d: &SparseAttention) -> f64 {
    (d.head_dim.div_ceil(32) as f64 + 8.0) * f64::from(f32::EPSILON)
}

/// Two roundings of a weight to bf16 differ by 2^-8 each at most: an online softmax rounds it
/// against the maximum so far. The sums over entries run in fp32.
fn value_gamma(d: &SparseAttention) -> f64 {
    let entries = (d.window_count + d.selected_count) as f64;
    2f64.powi(-7) + (entries / 16.0 + 8.0) * f64::from(f32::EPSILON)
}

fn log_gamma(d: &SparseAttention) -> f64 {
    let entries = (d.window_count + d.selected_count) as f64;
    score_gamma(d) + (entries / 32.0 + 8.0) * f64::from(f32::EPSILON)
}

/// The entries that a row lists, window first, one after the other; what is not there is left out.
fn listed(d: &SparseAttention, io: &Host<'_, SparseAttention>, t: usize) -> Vec<f32> {
    let dim = d.head_dim as usize;
    let mut keys = vec![0.0; (d.window_count + d.selected_count) as usize * dim];
    let mut found = 0;
    let parts = [(&io.window, &io.window_at), (&io.selected, &io.selected_at)];
    for (cache, at) in parts.into_iter().filter(|(_, at)| !at.is_empty()) {
        for i in 0..at.cols() {
            let to = &mut keys[found * dim..][..dim];
            found += usize::from(cache.entry_into(at.int(t, i), to));
        }
    }
    keys.truncate(found * dim);
    keys
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
fn head(q: &[f32], keys: &[f32], scale: f64, sink: Option<f32>) -> (Vec<f64>, f64) {
    let dim = q.len();
    if keys.is_empty() {
        return (vec![0.0; dim], nothing(sink));
    }
    let scores: Vec<f32> = keys.chunks(dim).map(|k| (sum::dot(q, k) * scale) as f32).collect();
    let softmax = Softmax::of(&scores, sink);
    let mut y = vec![0.0; dim];
    for (key, weight) in keys.chunks(dim).zip(&softmax.weights) {
        let weight = f64::from(bf16::round_f32(*weight));
        for (y, k) in y.iter_mut().zip(key) {
            *y += weight * f64::from(*k);
        }
    }
    y.iter_mut().for_each(|y| *y /= softmax.denominator);
    (y, softmax.log_sum())
}

/// Magnitudes of a head's values and of its log-sum: an error of a score moves its weight by as
/// much, relatively, and moves the denominator with it.
fn magnitudes(d: &SparseAttention, q: &[f32], keys: &[f32], sink: Option<f32>) -> (Vec<f64>, f64) {
    let (dim, scale) = (q.len(), f64::from(d.scale.value()));
    if keys.is_empty() {
        return (vec![0.0; dim], nothing(sink).abs());
    }
    let scores: Vec<f32> = keys.chunks(dim).map(|k| (sum::dot(q, k) * scale) as f32).collect();
    let softmax = Softmax::of(&scores, sink);
    // A score of minus infinity has no weight whatever the error.
    let size = |k: &[f32]| sum::dot_magnitude(q, k) * scale.abs();
    let finite = |term: f64| if term.is_finite() { term } else { 0.0 };
    let terms: Vec<f64> = keys.chunks(dim).map(|k| finite(size(k))).collect();
    let largest = terms.iter().copied().fold(0.0, f64::max);
    let ratio = score_gamma(d) / value_gamma(d);
    let mut y = vec![0.0; dim];
    for ((key, weight), term) in keys.chunks(dim).zip(&softmax.weights).zip(&terms) {
        let weight = f64::from(*weight) / softmax.denominator;
        for (y, k) in y.iter_mut().zip(key) {
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
        let keys = listed(d, &io, t);
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
fn accumulate(keys: &[f32], weights: &[f64], y: &mut [f64]) {
    let dim = y.len();
    let (fours, rest) = weights.as_chunks::<4>();
    let (front, back) = keys.split_at(fours.len() * 4 * dim);
    for (keys, w) in front.chunks_exact(4 * dim).zip(fours) {
        let (a, b) = keys.split_at(2 * dim);
        let ((a, b), (c, d)) = (a.split_at(dim), b.split_at(dim));
        for (((y, a), b), (c, d)) in y.iter_mut().zip(a).zip(b).zip(c.iter().zip(d)) {
            let sum = *y + w[0] * f64::from(*a) + w[1] * f64::from(*b);
            *y = sum + w[2] * f64::from(*c) + w[3] * f64::from(*d);
        }
    }
    for (key, w) in back.chunks_exact(dim).zip(rest) {
        for (y, k) in y.iter_mut().zip(key) {
            *y += w * f64::from(*k);
        }
    }
}

/// All heads of a row, each key read once for four of them; the bits of [`head`].
fn attend(q: &[&[f32]], keys: &[f32], scale: f64, sinks: &[Option<f32>]) -> Attended {
    let (heads, dim) = (q.len(), q[0].len());
    let mut values = vec![0.0; heads * dim];
    if keys.is_empty() {
        return Attended { values, log_sums: sinks.iter().map(|s| nothing(*s)).collect() };
    }
    let entries = keys.len() / dim;
    let mut scores = vec![0.0f32; heads.next_multiple_of(4) * entries];
    simd::vectorised(
        #[inline(always)]
        || {
            for (four, scores) in scores.chunks_exact_mut(4 * entries).enumerate() {
                let q: [&[f32]; 4] = std::array::from_fn(|i| q[(4 * four + i).min(heads - 1)]);
                for (i, key) in keys.chunks_exact(dim).enumerate() {
                    for (h, dot) in simd::dot4(key, q).into_iter().enumerate() {
                        scores[h * entries + i] = (dot * scale) as f32;
                    }
                }
            }
        },
    );
    let of = |h: usize| Softmax::of(&scores[h * entries..][..entries], sinks[h]);
    let softmaxes: Vec<Softmax> = (0..heads).map(of).collect();
    simd::vectorised(
        #[inline(always)]
        || {
            for (softmax, y) in softmaxes.iter().zip(values.chunks_exact_mut(dim)) {
                let round = |w: &f32| f64::from(bf16::round_f32(*w));
                let weights: Vec<f64> = softmax.weights.iter().map(round).collect();
                accumulate(keys, &weights, y);
                y.iter_mut().for_each(|y| *y /= softmax.denominator);
            }
        },
    );
    Attended { values, log_sums: softmaxes.iter().map(Softmax::log_sum).collect() }
}

fn blocked(d: &SparseAttention, mut io: Host<'_, SparseAttention>) {
    let (heads, dim, scale) = (d.heads as usize, d.head_dim as usize, f64::from(d.scale.value()));
    if io.y.is_empty() {
        return;
    }
    let sinks = sinks(&io.sink, heads);
    let operations = heads * dim * (d.window_count + d.selected_count) as usize / 3;
    let rows = threads::collect(io.window_at.rows(), operations, |t| {
        let q: Vec<_> = (0..heads).map(|h| io.q.row(t * heads + h)).collect();
        let q: Vec<&[f32]> = q.iter().map(|q| &**q).collect();
        attend(&q, &listed(d, &io, t), scale, &sinks)
    });
    for (r, values) in rows.iter().flat_map(|row| row.values.chunks(dim)).enumerate() {
        io.y.set_row(r, values);
    }
    if !io.lse.is_empty() {
        for (t, row) in rows.iter().enumerate() {
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
        // Lists that end just before, at and after a block of sixteen or sixty-four (case C030).
        cases.extend([17, 64, 65].map(|n| case((1, 64), v41, [n, 0], true, 1)));
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shape = |selected, tokens| {
            let (d, extents) =
                case((64, 512), [Form::Mxfp8, Form::Nvfp4], [128, selected], true, tokens);
            (d, extents.with(Sym::WindowPages, 8 * tokens).with(Sym::Pages, 1 << 12))
        };
        [1, 6, 32, 128].into_iter().flat_map(|t| [shape(0, t), shape(512, t)]).collect()
    }
}
