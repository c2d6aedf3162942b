//! Check values of verification, and the laws of what it emits.

use crate::buffer::{Buffer, alone};
use crate::{Card, Random};
use tandem_hal::{Draw, DrawIo, Enc, Filter, FilterIo, Real, Rule, Verify, VerifyIo};

/// One launch: laws row-major over sequences and places, drafts, lengths, draws.
pub(super) struct Launch<'a> {
    pub(super) vocab: u64,
    pub(super) block: u64,
    pub(super) rule: Rule,
    pub(super) p: &'a [f32],
    pub(super) q: &'a [f32],
    pub(super) draft: &'a [i32],
    pub(super) length: &'a [i32],
    pub(super) uniform: &'a [f32],
    pub(super) draw: &'a [f32],
}

impl Launch<'_> {
    /// Drafts accepted and the token after them, by sequence.
    pub(super) fn run(&self) -> Vec<(i32, i32)> {
        let Launch { vocab, block, rule, .. } = *self;
        let rate = Real::new(if rule == Rule::Synthetic { 0.5 } else { 0.0 });
        let n = self.length.len() as u64;
        let reals = |shape: &[u64], values: &[f32]| Buffer::of(Enc::F32, shape, values);
        let uses_q = matches!(rule, Rule::Standard | Rule::Block);
        let q = if uses_q { reals(&[n, block, vocab], self.q) } else { Buffer::absent() };
        let p = reals(&[n, block + 1, vocab], self.p);
        let (draft, length) =
            (Buffer::ints(&[n, block], self.draft), Buffer::ints(&[n], self.length));
        let (uniform, draw) = (reals(&[n, block], self.uniform), reals(&[n], self.draw));
        let mut accepted = Buffer::filled(Enc::I32, &[n], 0xA5);
        let mut token = accepted.clone();
        let io = VerifyIo {
            p: p.tensor(),
            q: q.tensor(),
            draft: draft.tensor(),
            length: length.tensor(),
            uniform: uniform.tensor(),
            draw: draw.tensor(),
            accepted: accepted.tensor_mut(),
            token: token.tensor_mut(),
        };
        let d = Verify { vocab, block, rule, rate };
        alone(|context| d.compute(io, context)).expect("nothing to exchange, nothing to fail");
        accepted.integers().into_iter().zip(token.integers()).collect()
    }
}

/// Laws with all mass at one id each.
fn certain(vocab: usize, ids: &[usize]) -> Vec<f32> {
    ids.iter().flat_map(|id| (0..vocab).map(move |x| f32::from(u8::from(x == *id)))).collect()
}

fn greedy(draft: &[i32], argmax: &[usize], length: i32) -> (i32, i32) {
    let p = certain(100, argmax);
    let launch = Launch {
        vocab: 100,
        block: draft.len() as u64,
        rule: Rule::Greedy,
        p: &p,
        q: &[],
        draft,
        length: &[length],
        uniform: &vec![0.0; draft.len()],
        draw: &[0.5],
    };
    launch.run()[0]
}

#[test]
fn greedy_drafts_stand_while_they_are_the_argmax() {
    let draft = [11, 12, 13, 14, 15];
    assert_eq!(greedy(&draft, &[11, 12, 99, 14, 15, 16], 5), (2, 99));
    assert_eq!(greedy(&draft, &[11, 12, 13, 14, 15, 16], 5), (5, 16));
    assert_eq!(greedy(&draft, &[9, 12, 13, 14, 15, 16], 5), (0, 9));
    assert_eq!(greedy(&draft, &[11, 12, 13, 14, 15, 16], 3), (3, 14));
    assert_eq!(greedy(&draft, &[11, 12, 13, 14, 15, 16], 0), (0, 11));
    // Lengths outside are brought to the nearest end.
    assert_eq!(greedy(&draft, &[11, 12, 13, 14, 15, 16], 9), (5, 16));
    assert_eq!(greedy(&draft, &[11, 12, 13, 14, 15, 16], -4), (0, 11));
    assert_eq!(greedy(&[11, -1, 13], &[11, 12, 13, 14], 3), (1, 12));
    assert_eq!(greedy(&[11, 100, 13], &[11, 12, 13, 14], 3), (1, 12));
}

const P: [f32; 16] =
    [0.5, 0.3, 0.15, 0.05, 0.1, 0.6, 0.2, 0.1, 0.25, 0.25, 0.25, 0.25, 0.7, 0.1, 0.1, 0.1];
const Q: [f32; 12] = [0.4, 0.4, 0.1, 0.1, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.7, 0.1];

/// The worked example under `rule`: drafts, acceptance draws and the draw after.
fn worked(rule: Rule, q: &[f32], draft: [i32; 3], uniform: [f32; 3], draw: f32) -> (i32, i32) {
    let (draft, length, draw) = (&draft[..], &[3][..], &[draw][..]);
    let uniform = &uniform[..];
    Launch { vocab: 4, block: 3, rule, p: &P, q, draft, length, uniform, draw }.run()[0]
}

#[test]
fn the_worked_example_under_both_rules() {
    // (draws, accepted by the standard rule, by the block rule); then where the residual law
    // [2/3 0 1/3 0], [1/3 1/3 0 1/3] or p_3 = [.7 .1 .1 .1] changes ids.
    let standard = |u, draw| worked(Rule::Standard, &Q, [1, 1, 2], u, draw);
    let block = |u, draw| worked(Rule::Block, &Q, [1, 1, 2], u, draw);
    let bonus = |k| [(0.69, (k, 0)), (0.71, (k, 1)), (0.81, (k, 2)), (0.91, (k, 3))];
    for (draw, want) in bonus(3) {
        assert_eq!(standard([0.7, 0.9, 0.3], draw), want);
        assert_eq!(block([0.7, 0.9, 0.3], draw), want);
        assert_eq!(block([0.8, 0.9, 0.3], draw), want);
    }
    for (draw, want) in [(0.0, 0), (0.66, 0), (0.67, 2), (0.99, 2)] {
        assert_eq!(standard([0.8, 0.9, 0.3], draw), (0, want));
    }
    for (draw, want) in [(0.33, 0), (0.34, 1), (0.66, 1), (0.67, 3)] {
        assert_eq!(standard([0.2, 0.1, 0.5], draw), (2, want));
        assert_eq!(block([0.2, 0.1, 0.5], draw), (2, want));
    }
}

#[test]
fn drafts_that_were_certain() {
    let q = certain(4, &[0, 1, 2]);
    let standard = |u, draw| worked(Rule::Standard, &q, [0, 1, 2], u, draw);
    for (draw, want) in [(0.33, 0), (0.34, 1), (0.66, 1), (0.67, 3)] {
        assert_eq!(standard([0.45, 0.55, 0.3], draw), (2, want));
    }
    for (draw, want) in [(0.24, 0), (0.26, 2), (0.74, 2), (0.76, 3)] {
        assert_eq!(standard([0.45, 0.65, 0.3], draw), (1, want));
    }
}

#[test]
fn block_odds_at_the_break_points() {
    // h = 0.375, 1, 0.357143, with the drafts after failing.
    let block = |u| worked(Rule::Block, &Q, [1, 1, 2], u, 0.0).0;
    assert_eq!(block([0.99, 0.99, 0.36]), 2);
    assert_eq!(block([0.99, 0.99, 0.357]), 3);
    // One draft only: h_1 = P_1 = 0.75.
    let one = |u: f32| {
        Launch {
            vocab: 4,
            block: 3,
            rule: Rule::Block,
            p: &P,
            q: &Q,
            draft: &[1, -1, 2],
            length: &[3],
            uniform: &[u, 0.0, 0.0],
            draw: &[0.0],
        }
        .run()[0]
            .0
    };
    assert_eq!((one(0.74), one(0.76)), (1, 0));
}

#[test]
fn impossible_drafts_never_stand() {
    // Token 3 has no mass under p, and the acceptance draw is the smallest there is.
    let (p, q) = ([0.5, 0.5, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25], [0.25; 4]);
    for rule in [Rule::Greedy, Rule::Standard, Rule::Block] {
        let launch = Launch {
            vocab: 4,
            block: 1,
            rule,
            p: &p,
            q: &q,
            draft: &[3],
            length: &[1],
            uniform: &[0.0],
            draw: &[0.9],
        };
        let (accepted, token) = launch.run()[0];
        assert!(accepted == 0 && (0..2).contains(&token), "{rule:?}: {token}");
    }
    // A q of zero or above one is no probability.
    for bad in [0.0, 1.5, f32::NAN] {
        let q = [0.5, 0.5, 0.0, bad];
        let p = [0.25; 8];
        let launch = Launch {
            vocab: 4,
            block: 1,
            rule: Rule::Standard,
            p: &p,
            q: &q,
            draft: &[3],
            length: &[1],
            uniform: &[0.0],
            draw: &[0.9],
        };
        assert_eq!(launch.run()[0].0, 0, "{bad}");
    }
}

#[test]
fn nan_stays_in_its_sequence() {
    let mut p = P.repeat(2);
    let q = Q.repeat(2);
    p[1] = f32::NAN;
    let (draft, length, draw) = ([1, 1, 2].repeat(2), [3, 3], [0.5, 0.5]);
    for rule in Rule::ALL {
        let (uniform, rule) = (&[0.2, 0.1, 0.3].repeat(2)[..], *rule);
        let (p, q, draft, length, draw) = (&p[..], &q[..], &draft[..], &length[..], &draw[..]);
        let both = Launch { vocab: 4, block: 3, rule, p, q, draft, length, uniform, draw }.run();
        let clean = worked(rule, &Q, [1, 1, 2], [0.2, 0.1, 0.3], 0.5);
        assert_eq!(both[1], clean, "{rule:?}");
        assert!(both[0].0 == 3 || both[0] == (0, -1), "{rule:?}: {:?}", both[0]);
    }
}

/// `rounds` draws from one law.
pub(super) fn draws(law: &[f32], random: &mut Random, rounds: usize) -> Vec<i32> {
    let (n, vocab) = (rounds as u64, law.len() as u64);
    let uniforms: Vec<f32> = (0..rounds).map(|_| random.unit()).collect();
    let (p, uniform) = (
        Buffer::of(Enc::F32, &[n, vocab], &law.repeat(rounds)),
        Buffer::of(Enc::F32, &[n], &uniforms),
    );
    let mut token = Buffer::filled(Enc::I32, &[n], 0xA5);
    let io = DrawIo { p: p.tensor(), uniform: uniform.tensor(), token: token.tensor_mut() };
    alone(|context| Draw { vocab }.compute(io, context)).expect("nothing to fail");
    token.integers()
}

/// A law at a temperature, by the filter.
fn tempered(law: &[f32], temperature: f32) -> Vec<f32> {
    let logits: Vec<f32> = law.iter().map(|p| libm::log(f64::from(*p)) as f32).collect();
    let (n, one) = (law.len() as u64, |v: f32| Buffer::of(Enc::F32, &[1], &[v]));
    let logits = Buffer::of(Enc::F32, &[1, n], &logits);
    let (t, top_k, top_p, min_p) = (one(temperature), Buffer::ints(&[1], &[0]), one(1.0), one(0.0));
    let mut p = Buffer::filled(Enc::F32, &[1, n], 0xA5);
    let io = FilterIo {
        logits: logits.tensor(),
        temperature: t.tensor(),
        top_k: top_k.tensor(),
        top_p: top_p.tensor(),
        min_p: min_p.tensor(),
        p: p.tensor_mut(),
    };
    alone(|context| Filter { vocab: n }.compute(io, context)).expect("nothing to fail");
    p.values()
}

/// Counts of the first token emitted, and how often the draft stood, in rounds of depth 1.
fn first_tokens(rule: Rule, p: &[f32], q: &[f32], rounds: usize, seed: u64) -> ([u64; 3], u64) {
    let mut random = Random::new(seed, 0);
    let draft = draws(q, &mut random, rounds);
    let mut uniforms = |n: usize| -> Vec<f32> { (0..n).map(|_| random.unit()).collect() };
    let launch = Launch {
        vocab: 3,
        block: 1,
        rule,
        p: &[p, p].concat().repeat(rounds),
        q: &q.repeat(rounds),
        draft: &draft,
        length: &vec![1; rounds],
        uniform: &uniforms(rounds),
        draw: &uniforms(rounds),
    };
    let (mut counts, mut stood) = ([0; 3], 0);
    for ((accepted, token), draft) in launch.run().into_iter().zip(draft) {
        stood += accepted as u64;
        counts[if accepted == 1 { draft } else { token } as usize] += 1;
    }
    (counts, stood)
}

/// Whether a count is within five standard deviations of its share.
fn plausible(count: u64, rounds: usize, share: f64) -> bool {
    let n = rounds as f64;
    (count as f64 - n * share).abs() <= 5.0 * (n * share * (1.0 - share)).sqrt()
}

#[test]
fn c052_acceptance_and_resampling_keep_the_law() {
    let (rounds, p, q) = (100_000, [0.5, 0.3, 0.2], [0.25, 0.25, 0.5]);
    for temperature in [1.0, 2.0] {
        let (p, q) = (tempered(&p, temperature), tempered(&q, temperature));
        let overlap: f64 = p.iter().zip(&q).map(|(p, q)| f64::from(p.min(*q))).sum();
        if temperature == 1.0 {
            assert!((overlap - 0.7).abs() < 1e-6);
        }
        for rule in [Rule::Standard, Rule::Block] {
            let (counts, stood) = first_tokens(rule, &p, &q, rounds, 52);
            assert!(plausible(stood, rounds, overlap), "{rule:?}: {stood} stood");
            for (count, p) in counts.iter().zip(&p) {
                assert!(plausible(*count, rounds, f64::from(*p)), "{rule:?}: {counts:?}");
            }
        }
    }
}

#[test]
fn c052_the_law_after_a_rejection() {
    // Token 2 stands with 0.4; what follows its rejection is [0.8333, 0.1667, 0].
    for (draw, want) in [(0.0, 0), (0.833, 0), (0.834, 1), (0.999, 1)] {
        let launch = Launch {
            vocab: 3,
            block: 1,
            rule: Rule::Standard,
            p: &[0.5, 0.3, 0.2].repeat(2),
            q: &[0.25, 0.25, 0.5],
            draft: &[2],
            length: &[1],
            uniform: &[0.41],
            draw: &[draw],
        };
        assert_eq!(launch.run(), [(0, want)]);
    }
}

#[test]
fn c053_sampling_samples_with_drafts_on() {
    for q in [[0.2, 0.2, 0.6], [1.0, 0.0, 0.0]] {
        let (counts, _) = first_tokens(Rule::Standard, &[0.5, 0.3, 0.2], &q, 10_000, 53);
        let close = counts.iter().zip([5000, 3000, 2000]).all(|(c, w)| c.abs_diff(w) <= 150);
        assert!(close, "{counts:?}");
        let (counts, _) = first_tokens(Rule::Standard, &[0.625, 0.375, 0.0], &q, 10_000, 54);
        assert!(counts[0].abs_diff(6250) <= 150 && counts[2] == 0, "{counts:?}");
    }
}
