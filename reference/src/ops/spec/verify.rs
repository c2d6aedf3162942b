//! Card of [`Verify`].

use crate::ops::sample::draw::walk;
use crate::{Card, Choices, Context, Host, Tensor, Tolerance, order};
use std::borrow::Cow;
use tandem_hal::{Extents, Real, Result, Rule, Sym, Verify, VerifyIo};

/// One sequence's drafts and the laws around them.
struct Drafts<'a> {
    p: &'a Tensor<'a>,
    q: &'a Tensor<'a>,
    /// Number of the sequence.
    sequence: usize,
    /// Drafts at most.
    block: usize,
    /// The drafts there are.
    tokens: Vec<usize>,
    /// Their acceptance draws.
    uniforms: Vec<f32>,
    /// The draw of the token after them.
    draw: f32,
}

/// Not below zero; NaN stays.
fn positive(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

impl Drafts<'_> {
    fn p(&self, i: usize) -> Cow<'_, [f32]> {
        self.p.row(self.sequence * (self.block + 1) + i)
    }
    fn q(&self, i: usize) -> Cow<'_, [f32]> {
        self.q.row(self.sequence * self.block + i)
    }
    fn count(&self) -> usize {
        self.tokens.len()
    }

    /// A token from `p_i`.
    fn draw_p(&self, i: usize) -> i32 {
        walk(self.p(i).iter().map(|p| f64::from(*p)), self.draw)
    }
    /// A token from the normalised `max(share p_i - q_i, 0)`, from `p_i` when that has no mass.
    fn draw_rest(&self, i: usize, share: f64) -> i32 {
        let (p, q) = (self.p(i), self.q(i));
        let rest = p.iter().zip(&*q).map(|(p, q)| positive(share * f64::from(*p) - f64::from(*q)));
        let mass: f64 = rest.clone().sum();
        if mass.is_nan() {
            -1
        } else if mass > 0.0 {
            walk(rest, self.draw)
        } else {
            self.draw_p(i)
        }
    }
    /// `p_i` and `q_i` of draft i; `None` when the latter is not in (0, 1].
    fn odds(&self, i: usize) -> Option<(f64, f64)> {
        let d = self.tokens[i];
        let (p, q) = (f64::from(self.p(i)[d]), f64::from(self.q(i)[d]));
        (q > 0.0 && q <= 1.0).then_some((p, q))
    }

    fn greedy(&self) -> (usize, i32) {
        let argmax = |i: usize| {
            let p = self.p(i);
            (!p.iter().any(|p| p.is_nan())).then(|| order::first(&p))
        };
        let stands = |i: &usize| argmax(*i) == Some(self.tokens[*i]);
        let k = (0..self.count()).take_while(stands).count();
        (k, argmax(k).map_or(-1, |x| x as i32))
    }

    fn standard(&self) -> (usize, i32) {
        let stands =
            |i: &usize| self.odds(*i).is_some_and(|(p, q)| f64::from(self.uniforms[*i]) * q < p);
        let k = (0..self.count()).take_while(stands).count();
        (k, if k == self.count() { self.draw_p(k) } else { self.draw_rest(k, 1.0) })
    }

    fn block(&self) -> (usize, i32) {
        let n = self.count();
        let (mut share, mut k, mut share_of_k) = (1.0f64, 0, 1.0);
        for i in 1..=n {
            share *= self.odds(i - 1).map_or(0.0, |(p, q)| p / q);
            // Not `min`, which would turn a NaN into a one.
            share = if share > 1.0 { 1.0 } else { share };
            let h = if i == n { share } else { self.block_odds(i, share) };
            if f64::from(self.uniforms[i - 1]) < h {
                (k, share_of_k) = (i, share);
            }
        }
        (k, if k == n { self.draw_p(n) } else { self.draw_rest(k, share_of_k) })
    }

    /// `h_i = S_i / (S_i + 1 - P_i)`.
    fn block_odds(&self, i: usize, share: f64) -> f64 {
        let (p, q) = (self.p(i), self.q(i));
        let rest = p.iter().zip(&*q).map(|(p, q)| positive(share * f64::from(*p) - f64::from(*q)));
        let mass: f64 = rest.sum();
        let whole = mass + 1.0 - share;
        if whole == 0.0 { 1.0 } else { mass / whole }
    }

    fn synthetic(&self, rate: f32) -> (usize, i32) {
        let k = self.uniforms.iter().take_while(|u| **u < rate).count();
        (k, self.draw_p(k))
    }
}

fn case(vocab: u64, block: u64, rule: Rule, sequences: u64) -> (Verify, Extents) {
    let rate = Real::new(if rule == Rule::Synthetic { 0.7 } else { 0.0 });
    (Verify { vocab, block, rule, rate }, Extents::of(&[(Sym::Sequences, sequences)]))
}

impl Card for Verify {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let VerifyIo { p, q, draft, length, uniform, draw, mut accepted, mut token } = io;
        let sequences = if length.is_empty() { 0 } else { length.cols() };
        let one = |s: usize| {
            let made = length.int(0, s).clamp(0, self.block.min(i32::MAX as u64) as i32) as usize;
            let known =
                |i| usize::try_from(draft.int(s, i)).ok().filter(|d| *d < self.vocab as usize);
            let tokens: Vec<usize> = (0..made).map_while(known).collect();
            let uniforms = (0..tokens.len()).map(|i| uniform.at(s, i)).collect();
            let (block, draw) = (self.block as usize, draw.at(0, s));
            let drafts = Drafts { p: &p, q: &q, sequence: s, block, tokens, uniforms, draw };
            match self.rule {
                Rule::Greedy => drafts.greedy(),
                Rule::Standard => drafts.standard(),
                Rule::Block => drafts.block(),
                Rule::Synthetic => drafts.synthetic(self.rate.value()),
            }
        };
        let (counts, tokens): (Vec<_>, Vec<_>) = (0..sequences).map(one).unzip();
        accepted.set_ints(0, &counts.iter().map(|k| *k as i32).collect::<Vec<_>>());
        token.set_ints(0, &tokens);
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (vocab, block) = (choices.pick(&[1, 2, 4, 31, 33, 100]), choices.between(1, 7));
        case(vocab, block, choices.pick(Rule::ALL), choices.between(0, 6))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let each =
            |rule: &Rule| [case(4, 3, *rule, 3), case(3, 1, *rule, 0), case(2048, 5, *rule, 7)];
        Rule::ALL.iter().flat_map(each).collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let rules = [Rule::Greedy, Rule::Standard, Rule::Block];
        rules.iter().flat_map(|rule| [1, 32].map(|s| case(129_280, 5, *rule, s))).collect()
    }
}
