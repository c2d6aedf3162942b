//! Hand-worked cases of attention.

use crate::Card;
use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use tandem_hal::{
    Cache, Enc, Form, MergeAttention, MergeAttentionIo, Mla, MlaAbsorbed, MlaAbsorbedIo,
    MlaExpanded, MlaExpandedIo, Real, Record, SparseAttention, SparseAttentionIo, Sym,
};

/// Entries of a page in these tests.
const PAGE: u64 = 4;

fn cache(form: Form, width: u32, pages: Sym) -> Cache {
    Cache { record: Record::new(form, width), page_entries: PAGE, pages }
}

fn entries(form: Form, vectors: &[Vec<f32>]) -> Buffer {
    let width = vectors[0].len() as u32;
    let pages = (vectors.len() as u64).div_ceil(PAGE);
    Buffer::of(Enc::Record(Record::new(form, width)), &[pages, PAGE], &vectors.concat())
}

/// One head over one cache of f32 entries: the value and the log-sum-exp of each row of `lists`.
fn attend(q: &[f32], keys: &Buffer, lists: &[Vec<i32>], sink: Option<f32>) -> (Vec<f32>, Vec<f32>) {
    let (tokens, count, dim) = (lists.len() as u64, lists[0].len() as u64, q.len() as u64);
    let Enc::Record(record) = keys.enc else { panic!("keys lie in a cache") };
    let descriptor = SparseAttention {
        heads: 1,
        head_dim: dim,
        window: cache(record.form, record.width, Sym::WindowPages),
        window_count: count,
        selected: None,
        selected_count: 0,
        scale: Real::new(1.0),
        sink: sink.is_some(),
        lse: true,
    };
    let q = Buffer::of(Enc::BF16, &[tokens, 1, dim], &q.repeat(lists.len()));
    let at = Buffer::ints(&[tokens, count], &lists.concat());
    let sink = sink.map_or(Buffer::absent(), |s| Buffer::of(Enc::F32, &[1], &[s]));
    let (none, none_at) = (Buffer::absent(), Buffer::absent());
    let mut both = vec![];
    for row in SparseAttention::rows() {
        let mut y = Buffer::filled(Enc::BF16, &[tokens, 1, dim], 0);
        let mut lse = Buffer::filled(Enc::F32, &[tokens, 1], 0);
        let io = SparseAttentionIo {
            q: q.tensor(),
            window: keys.tensor(),
            window_at: at.tensor(),
            selected: none.tensor(),
            selected_at: none_at.tensor(),
            sink: sink.tensor(),
            y: y.tensor_mut(),
            lse: lse.tensor_mut(),
        };
        alone(|c| (row.launch)(&descriptor, io, c)).expect("attention cannot fail");
        both.push((y.values(), lse.values()));
    }
    let [fast, slow] = both.try_into().expect("two rows");
    let bits = |(y, lse): &(Vec<f32>, Vec<f32>)| -> Vec<u32> {
        y.iter().chain(lse).map(|v| v.to_bits()).collect()
    };
    assert_eq!(bits(&fast), bits(&slow), "the fast row has the bits of the scalar one");
    slow
}

fn ramp(n: usize, dim: usize) -> Vec<Vec<f32>> {
    (0..n).map(|i| (0..dim).map(|d| (i * dim + d) as f32 * 0.25 - 3.0).collect()).collect()
}

#[test]
fn rows_agree() {
    edges_agree::<SparseAttention>();
    draws_agree::<SparseAttention>(15);
    edges_agree::<MergeAttention>();
    draws_agree::<MergeAttention>(15);
    edges_agree::<MlaExpanded>();
    draws_agree::<MlaExpanded>(20);
    edges_agree::<MlaAbsorbed>();
    draws_agree::<MlaAbsorbed>(20);
}

#[test]
fn b7_the_sink_is_counted_but_has_no_value() {
    // The first dim of a key is its score, the second its value.
    let keys = entries(Form::F32, &[vec![0.2, 1.0], vec![-0.1, 2.0], vec![0.7, 3.0]]);
    let (y, lse) = attend(&[1.0, 0.0], &keys, &[vec![0, 1, 2]], Some(0.5));
    // 1.5672454 but for the weights' rounding to bf16, then to bf16.
    assert_eq!(y[1], 1.5703125);
    let want = [0.2f64, -0.1, 0.7, 0.5].iter().map(|s| s.exp()).sum::<f64>().ln();
    approx(lse[0], want);
}

fn approx(got: f32, want: f64) {
    assert!((f64::from(got) - want).abs() < 1e-6, "{got} is not {want}");
}

#[test]
fn c003_the_dialect_travels_with_each_buffer() {
    let mut vector = vec![0.0; 64];
    vector[..3].copy_from_slice(&[1.0, -2.0, 0.5]);
    let descriptor = |window: Form, selected: Form| SparseAttention {
        heads: 1,
        head_dim: 64,
        window: cache(window, 64, Sym::WindowPages),
        window_count: 1,
        selected: Some(cache(selected, 64, Sym::Pages)),
        selected_count: 1,
        scale: Real::new(1.0),
        sink: false,
        lse: false,
    };
    let q = Buffer::filled(Enc::BF16, &[1, 1, 64], 0);
    for forms in [[Form::Mxfp8Fnuz, Form::Mxfp8], [Form::Mxfp8, Form::Mxfp8Fnuz]] {
        let caches = forms.map(|form| entries(form, std::slice::from_ref(&vector)));
        for lists in [[0, -1], [-1, 0], [0, 0]] {
            let at = lists.map(|at| Buffer::ints(&[1, 1], &[at]));
            let (none, mut lse) = (Buffer::absent(), Buffer::absent());
            let mut y = Buffer::filled(Enc::BF16, &[1, 1, 64], 0);
            let io = SparseAttentionIo {
                q: q.tensor(),
                window: caches[0].tensor(),
                window_at: at[0].tensor(),
                selected: caches[1].tensor(),
                selected_at: at[1].tensor(),
                sink: none.tensor(),
                y: y.tensor_mut(),
                lse: lse.tensor_mut(),
            };
            alone(|c| descriptor(forms[0], forms[1]).compute(io, c)).expect("cannot fail");
            assert_eq!(y.values()[..4], [1.0, -2.0, 0.5, 0.0], "{forms:?} {lists:?}");
        }
    }
}

#[test]
fn c030_leading_masked_chunks_are_skipped() {
    let keys = entries(Form::F32, &ramp(8, 8));
    let v3 = ramp(8, 8)[3].clone();
    for masked in [16, 63, 64] {
        let list = [vec![-1; masked], vec![3]].concat();
        let (y, lse) =
            attend(&[0.0; 8], &keys, std::slice::from_ref(&list), Some(f32::NEG_INFINITY));
        assert_eq!((y, lse[0]), (v3.clone(), 0.0));
        let (y, lse) = attend(&[0.0; 8], &keys, &[list], Some(0.0));
        assert_eq!(y, v3.iter().map(|v| v / 2.0).collect::<Vec<_>>());
        approx(lse[0], 2f64.ln());
    }
}

#[test]
fn c031_invalid_indices_of_both_kinds() {
    let keys = entries(Form::F32, &ramp(4, 8));
    let lists = [vec![2, -1], vec![2, 4], vec![2, 2_147_480_000], vec![-1, -1]];
    let v2 = ramp(4, 8)[2].clone();
    let (y, lse) = attend(&[0.0; 8], &keys, &lists, Some(f32::NEG_INFINITY));
    assert_eq!(y, [v2.clone(), v2.clone(), v2, vec![0.0; 8]].concat());
    assert_eq!(lse, [0.0, 0.0, 0.0, f32::NEG_INFINITY]);
}

#[test]
fn c032_what_is_not_listed_does_not_touch_the_result() {
    let mut vectors = vec![vec![f32::NAN; 8]; 8];
    vectors[5] = ramp(8, 8)[5].clone();
    let keys = entries(Form::F32, &vectors);
    let (y, _) = attend(&[0.0; 8], &keys, &[vec![-1, 5]], Some(f32::NEG_INFINITY));
    assert_eq!(y, vectors[5]);
    let (y, _) = attend(&[0.0; 8], &keys, &[vec![4, 5]], None);
    assert!(y.iter().all(|v| v.is_nan()), "a listed NaN shows");
}

#[test]
fn c039_rows_without_entries_give_zeros() {
    let keys = entries(Form::F32, &ramp(8, 8));
    let mut lists = vec![vec![-1; 6]; 4];
    lists[1] = vec![0, 1, 2, 3, 4, -1];
    let (y, lse) = attend(&[0.0; 8], &keys, &lists, None);
    let mean: Vec<f32> = (0..8).map(|d| (16 + d) as f32 * 0.25 - 3.0).collect();
    assert_eq!(y, [vec![0.0; 8], mean, vec![0.0; 16]].concat());
    approx(lse[1], 5f64.ln());
    assert_eq!([lse[0], lse[2], lse[3]], [f32::NEG_INFINITY; 3]);
    let (_, lse) = attend(&[0.0; 8], &keys, &lists[..1], Some(0.75));
    assert_eq!(lse, [0.75], "the sink is all there is");
}

#[test]
fn a_sink_that_overflows_gives_zeros() {
    let keys = entries(Form::F32, &ramp(4, 8));
    let (y, lse) = attend(&[0.0; 8], &keys, &[vec![0, 1]], Some(100.0));
    assert_eq!((y, lse[0]), (vec![0.0; 8], f32::INFINITY));
}

#[test]
fn c035_windows_shorter_and_longer_than_the_sequence() {
    let keys = entries(Form::F32, &ramp(8, 8));
    let mean = |slots: &[i32]| -> Vec<f32> {
        let sum = |d: i32| slots.iter().map(|s| s * 8 + d).sum::<i32>() as f32;
        (0..8).map(|d| sum(d) / slots.len() as f32 * 0.25 - 3.0).collect()
    };
    let lists: [&[i32]; 8] = [
        &[0, -1, -1, -1],
        &[0, 1, -1, -1],
        &[0, 1, 2, 3],
        &[1, 2, 3, 4],
        &[2, 3, 4, 5],
        &[-1, -1, 2, 3],
        &[6, 7, 0, 1],
        &[-1, 0, -1, 1],
    ];
    let rows: Vec<Vec<i32>> = lists.iter().map(|l| l.to_vec()).collect();
    let (y, _) = attend(&[0.0; 8], &keys, &rows, None);
    for (list, y) in rows.iter().zip(y.chunks(8)) {
        let listed: Vec<i32> = list.iter().copied().filter(|s| *s >= 0).collect();
        assert_eq!(y, mean(&listed), "{list:?}");
    }
    // The ring of eight at position 9, rotated, and at position 3.
    let ring = [vec![2, 3, 4, 5, 6, 7, 0, 1], vec![-1, -1, -1, -1, 0, 1, 2, 3]];
    let (y, _) = attend(&[0.0; 8], &keys, &ring, None);
    assert_eq!(y, [mean(&[0, 1, 2, 3, 4, 5, 6, 7]), mean(&[0, 1, 2, 3])].concat());
}

/// Parts `a` and `b` of one head and their log-sum-exps.
fn merge(a: (&[f32], f32), b: (&[f32], f32), sink: Option<f32>) -> (Vec<f32>, f32) {
    let dim = a.0.len() as u64;
    let row = |x: &[f32]| Buffer::of(Enc::BF16, &[1, 1, dim], x);
    let one = |x: f32| Buffer::of(Enc::F32, &[1, 1], &[x]);
    let (parts, logs) = ([row(a.0), row(b.0)], [one(a.1), one(b.1)]);
    let logit = sink.map_or(Buffer::absent(), |s| Buffer::of(Enc::F32, &[1], &[s]));
    let (mut y, mut lse) = (row(a.0), one(0.0));
    let io = MergeAttentionIo {
        a: parts[0].tensor(),
        lse_a: logs[0].tensor(),
        b: parts[1].tensor(),
        lse_b: logs[1].tensor(),
        sink: logit.tensor(),
        y: y.tensor_mut(),
        lse: lse.tensor_mut(),
    };
    let descriptor = MergeAttention { heads: 1, head_dim: dim, sink: sink.is_some() };
    alone(|c| descriptor.compute(io, c)).expect("cannot fail");
    (y.values(), lse.values()[0])
}

#[test]
fn parts_weigh_by_their_exponentials() {
    let (a, b) = ([1.0f32, -4.0], [5.0f32, 8.0]);
    let (y, lse) = merge((&a, 0.0), (&b, 3f32.ln()), None);
    assert_eq!(y, [4.0, 5.0]);
    approx(lse, 4f64.ln());
    let (y, lse) = merge((&a, 0.0), (&b, 3f32.ln()), Some(4f32.ln()));
    assert_eq!(y, [2.0, 2.5]);
    approx(lse, 8f64.ln());
}

#[test]
fn a_part_without_entries_is_not_touched() {
    let (none, b) = ([f32::NAN, f32::INFINITY], [5.0f32, 8.0]);
    assert_eq!(merge((&none, f32::NEG_INFINITY), (&b, 2.5), None), (b.to_vec(), 2.5));
    assert_eq!(merge((&b, 2.5), (&none, f32::NEG_INFINITY), None), (b.to_vec(), 2.5));
    let both = merge((&none, f32::NEG_INFINITY), (&none, f32::NEG_INFINITY), Some(0.5));
    assert_eq!(both, (vec![0.0; 2], 0.5));
    let (y, lse) = merge((&b, f32::NAN), (&b, 1.0), None);
    assert!(y.iter().all(|v| v.is_nan()) && lse.is_nan());
}

#[test]
fn absorbing_the_up_projections_changes_rounding_only() {
    let mla = Mla { heads: 2, nope: 8, rope: 4, latent: 12, value: 6, scale: Real::new(0.3) };
    let reals = |shape: &[u64], step: usize| {
        let count = shape.iter().product::<u64>() as usize;
        let values: Vec<f32> = (0..count).map(|i| (i * step % 23) as f32 * 0.1 - 1.1).collect();
        Buffer::of(Enc::F32, shape, &values)
    };
    let (q, latent, k_rope) = (reals(&[4, 2, 12], 7), reals(&[5, 12], 5), reals(&[5, 4], 11));
    let (uk, uv) = (reals(&[2, 8, 12], 3), reals(&[2, 6, 12], 9));
    let visible = Buffer::ints(&[4], &[5, 2, 0, 9]);
    let outputs = || Buffer::filled(Enc::F32, &[4, 2, 6], 0xFF);
    let (mut expanded, mut absorbed) = (outputs(), outputs());
    let (q, latent, k_rope) = (q.tensor(), latent.tensor(), k_rope.tensor());
    let (uk, uv, visible) = (uk.tensor(), uv.tensor(), visible.tensor());
    let io = MlaExpandedIo {
        q: q.clone(),
        latent: latent.clone(),
        k_rope: k_rope.clone(),
        uk: uk.clone(),
        uv: uv.clone(),
        visible: visible.clone(),
        y: expanded.tensor_mut(),
    };
    alone(|c| MlaExpanded { mla: mla.clone() }.compute(io, c)).expect("cannot fail");
    let io = MlaAbsorbedIo { q, latent, k_rope, uk, uv, visible, y: absorbed.tensor_mut() };
    alone(|c| MlaAbsorbed { mla }.compute(io, c)).expect("cannot fail");
    let (expanded, absorbed) = (expanded.values(), absorbed.values());
    for (a, b) in expanded.iter().zip(&absorbed) {
        assert!((a - b).abs() <= 4.0 * f32::EPSILON, "{a} and {b}");
    }
    assert_eq!(expanded[24..36], [0.0; 12], "the third row sees nothing");
    assert!(expanded[..24].iter().all(|v| *v != 0.0));
}

#[test]
fn one_visible_key_gives_its_value() {
    // With a single key the softmax is 1, so the value is uv times the latent.
    let mla = Mla { heads: 1, nope: 1, rope: 2, latent: 2, value: 2, scale: Real::new(1.0) };
    let of = |shape: &[u64], values: &[f32]| Buffer::of(Enc::F32, shape, values);
    let (q, latent) = (of(&[1, 1, 3], &[1.0, 2.0, 3.0]), of(&[2, 2], &[1.0, 2.0, f32::NAN, 0.0]));
    let (k_rope, uk) = (of(&[2, 2], &[0.5; 4]), of(&[1, 1, 2], &[1.0, 1.0]));
    let (uv, visible) = (of(&[1, 2, 2], &[3.0, 4.0, -1.0, 0.5]), Buffer::ints(&[1], &[1]));
    let mut y = of(&[1, 1, 2], &[0.0; 2]);
    let io = MlaExpandedIo {
        q: q.tensor(),
        latent: latent.tensor(),
        k_rope: k_rope.tensor(),
        uk: uk.tensor(),
        uv: uv.tensor(),
        visible: visible.tensor(),
        y: y.tensor_mut(),
    };
    alone(|c| MlaExpanded { mla }.compute(io, c)).expect("cannot fail");
    assert_eq!(y.values(), [11.0, 0.0]);
}
