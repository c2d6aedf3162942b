//! The law of what comes out of sampling and of every verification rule, held against the target's
//! by Pearson's chi-square. Seeds are fixed, so a verdict never changes from run to run.

use super::verify_tests::{Launch, draws};
use crate::Random;
use tandem_hal::Rule;

const VOCAB: usize = 4;
const BLOCK: usize = 3;
/// Tokens of a text whose joint law is judged: one more than drafts, so that the token after a block
/// that stands counts too.
const TEXT: usize = BLOCK + 1;
const ROUNDS: usize = 100_000;
/// Normal quantile of one in a million.
const QUANTILE: f64 = 4.753;

/// A law of the next token after every text shorter than [`TEXT`].
struct Model(Vec<[f32; VOCAB]>);

impl Model {
    /// Uneven laws; one token of each is impossible.
    fn random(random: &mut Random) -> Model {
        let mut law = |_| {
            let mut law: [f32; VOCAB] = std::array::from_fn(|_| 0.05 + random.unit());
            law[random.below(VOCAB as u64) as usize] = 0.0;
            let sum: f32 = law.iter().sum();
            law.map(|p| p / sum)
        };
        let texts = (0..TEXT as u32).map(|tokens| VOCAB.pow(tokens)).sum();
        Model((0..texts).map(&mut law).collect())
    }

    /// All mass at the likeliest token.
    fn certain(&self) -> Model {
        let certain = |law: &[f32; VOCAB]| {
            let largest = law.iter().copied().fold(0.0, f32::max);
            law.map(|p| if p == largest { 1.0 } else { 0.0 })
        };
        Model(self.0.iter().map(certain).collect())
    }

    fn law(&self, text: &[usize]) -> &[f32; VOCAB] {
        &self.0[text.iter().fold(0, |at, token| at * VOCAB + token + 1)]
    }

    fn probability(&self, text: &[usize]) -> f64 {
        let next = |at: usize| {
            let law = self.law(&text[..at]).map(f64::from);
            law[text[at]] / law.iter().sum::<f64>()
        };
        (0..text.len()).map(next).product()
    }

    /// Adds a token, by the drawing operator.
    fn extend(&self, text: &mut Vec<usize>, random: &mut Random) {
        text.push(draws(self.law(text), random, 1)[0] as usize);
    }

    fn texts(&self, random: &mut Random, tokens: usize) -> Vec<Vec<usize>> {
        let mut texts = vec![vec![]; ROUNDS];
        for text in &mut texts {
            (0..tokens).for_each(|_| self.extend(text, random));
        }
        texts
    }
}

/// The text of number `cell`.
fn text(cell: usize) -> Vec<usize> {
    (0..TEXT as u32).rev().map(|place| cell / VOCAB.pow(place) % VOCAB).collect()
}

/// Pearson's sum for texts of a law, over what is exceeded once in a million times; above 1 the law
/// is another. Infinite when something impossible came out.
fn departure(texts: &[Vec<usize>], target: &Model) -> f64 {
    let mut counts = vec![0u64; VOCAB.pow(TEXT as u32)];
    for text in texts {
        counts[text.iter().fold(0, |at, token| at * VOCAB + token)] += 1;
    }
    // Cells expected less than ten times are judged together.
    let (mut rare, mut sum, mut cells) = ([0.0; 2], 0.0, 0);
    let mut judge = |got: f64, expected: f64| {
        sum += (got - expected).powi(2) / expected;
        cells += 1;
    };
    for (cell, count) in counts.into_iter().enumerate() {
        let expected = target.probability(&text(cell)) * texts.len() as f64;
        match expected {
            0.0 if count > 0 => return f64::INFINITY,
            10.0.. => judge(count as f64, expected),
            _ => rare = [rare[0] + count as f64, rare[1] + expected],
        }
    }
    if rare[1] > 0.0 {
        judge(rare[0], rare[1]);
    }
    // Wilson and Hilferty's quantile.
    let freedom = f64::from(cells - 1);
    let part = 2.0 / (9.0 * freedom);
    sum / (freedom * (1.0 - part + QUANTILE * part.sqrt()).powi(3))
}

/// Drafts of a model verified against a target.
struct Verified {
    drafts: Vec<Vec<usize>>,
    /// Drafts that stood and the token after them.
    outcomes: Vec<(i32, i32)>,
}

impl Verified {
    fn of(rule: Rule, target: &Model, drafter: &Model, random: &mut Random) -> Verified {
        let drafts = drafter.texts(random, BLOCK);
        let laws = |model: &Model, places: usize| -> Vec<f32> {
            let of = |text: &Vec<usize>| (0..places).map(|at| *model.law(&text[..at])).collect();
            drafts.iter().flat_map(|text| -> Vec<[f32; VOCAB]> { of(text) }).flatten().collect()
        };
        let (p, q) = (laws(target, TEXT), laws(drafter, BLOCK));
        let mut uniforms = |n: usize| -> Vec<f32> { (0..n).map(|_| random.unit()).collect() };
        let launch = Launch {
            vocab: VOCAB as u64,
            block: BLOCK as u64,
            rule,
            p: &p,
            q: &q,
            draft: &drafts.iter().flatten().map(|token| *token as i32).collect::<Vec<_>>(),
            length: &vec![BLOCK as i32; ROUNDS],
            uniform: &uniforms(BLOCK * ROUNDS),
            draw: &uniforms(ROUNDS),
        };
        Verified { outcomes: launch.run(), drafts }
    }

    /// What is emitted, continued by the target.
    fn texts(&self, target: &Model, random: &mut Random) -> Vec<Vec<usize>> {
        let emitted = |(drafts, (accepted, token)): (&Vec<usize>, &(i32, i32))| {
            let mut text = drafts[..*accepted as usize].to_vec();
            text.push(*token as usize);
            while text.len() < TEXT {
                target.extend(&mut text, random);
            }
            text
        };
        self.drafts.iter().zip(&self.outcomes).map(emitted).collect()
    }

    fn accepted(&self) -> u64 {
        self.outcomes.iter().map(|(accepted, _)| *accepted as u64).sum()
    }
}

fn models(seed: u64) -> (Model, Model, Random) {
    let mut random = Random::new(seed, 0);
    (Model::random(&mut random), Model::random(&mut random), random)
}

#[test]
fn c052_draws_have_the_law() {
    let (target, _, mut random) = models(1);
    let departure = departure(&target.texts(&mut random, TEXT), &target);
    println!("drawn: {departure:.3}");
    assert!(departure < 1.0, "{departure}");
}

#[test]
fn c052_c053_texts_have_the_targets_joint_law_under_every_rule() {
    let mut greedy = 0;
    for seed in 2..5 {
        let (target, drafter, mut random) = models(seed);
        let accepted = [Rule::Standard, Rule::Block].map(|rule| {
            let verified = Verified::of(rule, &target, &drafter, &mut random);
            let departure = departure(&verified.texts(&target, &mut random), &target);
            println!("{rule:?}, seed {seed}: {departure:.3}, {} stood", verified.accepted());
            assert!(departure < 1.0, "{rule:?}, seed {seed}: {departure}");
            verified.accepted()
        });
        // The block rule accepts at least as many in the mean.
        assert!(accepted[1] as f64 > accepted[0] as f64 * 0.99, "seed {seed}: {accepted:?}");
        // The greedy rule serves targets that are certain; their law leaves one text.
        let certain = target.certain();
        let verified = Verified::of(Rule::Greedy, &target, &drafter, &mut random);
        let texts = verified.texts(&certain, &mut random);
        assert!(texts.iter().all(|text| certain.probability(text) == 1.0), "seed {seed}");
        greedy += verified.accepted();
    }
    assert!(greedy > 0, "no draft was the likeliest token");
}

/// What the test would say of rules that look right.
#[test]
fn wrong_rules_are_told_apart() {
    let (target, drafter, mut random) = models(2);
    let right = Verified::of(Rule::Standard, &target, &drafter, &mut random);
    let mut wrong = |change: &dyn Fn(&Verified, usize, &mut Random) -> (i32, i32)| {
        let outcomes = (0..ROUNDS).map(|i| change(&right, i, &mut random)).collect();
        let verified = Verified { drafts: right.drafts.clone(), outcomes };
        departure(&verified.texts(&target, &mut random), &target)
    };
    let from_target =
        |drafts: &[usize], random: &mut Random| draws(target.law(drafts), random, 1)[0];
    let all_stand =
        wrong(&|verified, i, random| (BLOCK as i32, from_target(&verified.drafts[i], random)));
    let whole_law_after_a_rejection = wrong(&|verified, i, random| {
        let accepted = verified.outcomes[i].0;
        (accepted, from_target(&verified.drafts[i][..accepted as usize], random))
    });
    let last_draft_lost = wrong(&|verified, i, random| match verified.outcomes[i].0 {
        0 => verified.outcomes[i],
        some => (some - 1, from_target(&verified.drafts[i][..some as usize - 1], random)),
    });
    println!("{all_stand:.1}, {whole_law_after_a_rejection:.1}, {last_draft_lost:.1}");
    assert!(all_stand.min(whole_law_after_a_rejection).min(last_draft_lost) > 1.0);
}
