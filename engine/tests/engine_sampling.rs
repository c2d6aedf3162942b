//! Sampling on the reference device, over a model whose logits are a table.

mod engine_support;

use engine_support::table::{Law, confident_engine, engine};
use engine_support::{Answer, answers, options};
use tandem_engine::exec::{EngineOptions, FinishReason, Request, Work};
use tandem_engine::sample::SamplingParameters;
use tandem_hal::Rule;

fn request(sampling: SamplingParameters, max_tokens: u64, drafts: bool) -> Request {
    let max_tokens = Some(max_tokens);
    Request { prompt: vec![0, 1], sampling, max_tokens, drafts, ..Request::default() }
}

fn two_one_zero(_: u32, _: u64) -> Vec<f32> {
    vec![2.0, 1.0, 0.0]
}

fn zero_one_two(_: u32, _: u64) -> Vec<f32> {
    vec![0.0, 1.0, 2.0]
}

/// Logits without a pattern; some rows have ties.
fn scattered(id: u32, at: u64) -> Vec<f32> {
    let mix = |x: u64| (u64::from(id) * 31 + at * 7 + x * 13).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..17).map(|x| (mix(x) >> 61) as f32).collect()
}

fn scattered_otherwise(_: u32, at: u64) -> Vec<f32> {
    scattered(3, at)
}

fn one(setup: (u64, Rule), laws: (Law, Law), sampling: SamplingParameters, drafts: bool) -> Answer {
    let mut engine = engine(setup, laws, options());
    answers(&mut engine, vec![request(sampling, 12, drafts)]).remove(0)
}

#[test]
fn c073_c074_log_probabilities_are_of_the_raw_logits() {
    let right = [-0.407_606, -1.407_606, -2.407_606];
    for (temperature, top_p) in [(0.0, 1.0), (2.0, 1.0), (1.0, 0.5)] {
        for (drafts, draft) in
            [(false, zero_one_two as Law), (true, zero_one_two), (true, two_one_zero)]
        {
            let sampling = SamplingParameters {
                log_probs: Some(3),
                seed: Some(3),
                temperature,
                top_p,
                ..Default::default()
            };
            let answer = one((3, Rule::Standard), (two_one_zero, draft), sampling, drafts);
            assert_eq!((answer.tokens.len(), answer.log_probs.len()), (12, 12));
            for (token, row) in answer.tokens.iter().zip(&answer.log_probs) {
                let ids: Vec<_> = row.top.iter().map(|(id, _)| *id).collect();
                assert_eq!(ids, [0, 1, 2]);
                for ((_, value), right) in row.top.iter().zip(right) {
                    assert!((value - right).abs() < 1e-5, "{value}");
                }
                assert_eq!(row.chosen, row.top[*token as usize].1);
            }
        }
    }
    let own = SamplingParameters { log_probs: Some(0), ..Default::default() };
    let answer = one((3, Rule::Standard), (two_one_zero, two_one_zero), own, true);
    assert!(answer.log_probs.iter().all(|row| row.top.is_empty() && row.chosen < -0.4));
}

/// Of the logits that the token is chosen by, or of those before any penalty, bias or mask.
#[test]
fn c073_log_probabilities_after_penalties_or_before() {
    let raw = [-0.407_606, -1.407_606, -2.407_606];
    // With 2 added to the logit of id 2 they are 2, 1, 2.
    let processed = [-0.861_995, -1.861_995, -0.861_995];
    for draft in [two_one_zero as Law, zero_one_two] {
        for drafts in [false, true] {
            for (raw_log_probs, values, order) in
                [(true, raw, [0, 1, 2]), (false, processed, [0, 2, 1])]
            {
                let sampling = SamplingParameters {
                    log_probs: Some(3),
                    raw_log_probs,
                    logit_bias: vec![(2, 2.0)],
                    temperature: 1.0,
                    seed: Some(2),
                    ..Default::default()
                };
                let answer = one((3, Rule::Block), (two_one_zero, draft), sampling, drafts);
                assert!(answer.tokens.contains(&2), "the bias tells");
                for (token, row) in answer.tokens.iter().zip(&answer.log_probs) {
                    let ids: Vec<_> = row.top.iter().map(|(id, _)| *id).collect();
                    assert_eq!(ids, order, "raw {raw_log_probs}");
                    assert!((row.chosen - values[*token as usize]).abs() < 1e-5, "{row:?}");
                    for (id, value) in &row.top {
                        assert!((value - values[*id as usize]).abs() < 1e-5, "{row:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn c054_greedy_tokens_do_not_depend_on_drafts_or_rules() {
    let laws: (Law, Law) = (scattered, scattered_otherwise);
    let plain = one((17, Rule::Standard), laws, SamplingParameters::default(), false);
    assert!(plain.tokens.windows(2).any(|pair| pair[0] != pair[1]), "the table has a pattern");
    for draft in [scattered as Law, scattered_otherwise] {
        for rule in [Rule::Standard, Rule::Block, Rule::Greedy] {
            for draft_tokens in 1..=5 {
                // A sampled neighbour makes the step take the rule that reads the laws.
                for neighbour in [false, true] {
                    let options = EngineOptions { draft_tokens, ..options() };
                    let mut engine = engine((17, rule), (scattered, draft), options);
                    let mut requests = vec![request(SamplingParameters::default(), 12, true)];
                    if neighbour && rule != Rule::Greedy {
                        let sampling =
                            SamplingParameters { temperature: 1.0, ..Default::default() };
                        requests.insert(0, request(sampling, 12, true));
                    }
                    let answers = answers(&mut engine, requests);
                    assert_eq!(answers.last().unwrap().tokens, plain.tokens, "{rule:?}");
                }
            }
        }
    }
}

#[test]
fn drafts_that_agree_are_taken() {
    for rule in [Rule::Standard, Rule::Block] {
        let same: (Law, Law) = (two_one_zero, two_one_zero);
        let sampling = SamplingParameters { temperature: 1.0, seed: Some(1), ..Default::default() };
        for sampling in [SamplingParameters::default(), sampling] {
            let answer = one((3, rule), same, sampling, true);
            // Equal laws: every draft stands.
            assert_eq!(answer.usage.accepted_tokens, answer.usage.drafted_tokens);
            assert!(answer.usage.drafted_tokens >= 9);
        }
    }
}

/// Counts of ids among the tokens after the first, which drafts have a say in.
fn counts(rule: Rule, drafts: bool, sampling: &SamplingParameters, draft: Law) -> ([u64; 3], u64) {
    let target = |_: u32, _: u64| vec![0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
    let options = EngineOptions { sequences: 64, step_tokens: 512, ..options() };
    let mut engine = engine((3, rule), (target, draft), options);
    let make = |seed| {
        let sampling = SamplingParameters { seed: Some(seed), ..sampling.clone() };
        request(sampling, 3, drafts)
    };
    let (mut counts, mut accepted) = ([0; 3], 0);
    for answer in answers(&mut engine, (0..5_000).map(make).collect()) {
        answer.tokens[1..].iter().for_each(|id| counts[*id as usize] += 1);
        accepted += answer.usage.accepted_tokens;
    }
    (counts, accepted)
}

/// Within five standard deviations of a share.
fn near(count: u64, total: u64, share: f64) -> bool {
    let (expected, total) = (total as f64 * share, total as f64);
    (count as f64 - expected).abs() < 5.0 * (total * share * (1.0 - share)).sqrt()
}

#[test]
fn c052_c053_drafts_keep_the_law() {
    let tempered = SamplingParameters { temperature: 1.0, ..Default::default() };
    let mut rates = Vec::new();
    for (rule, drafts) in [(Rule::Standard, false), (Rule::Standard, true), (Rule::Block, true)] {
        let (counts, accepted) =
            counts(rule, drafts, &tempered, |_, _| vec![0.25f32.ln(), 0.25f32.ln(), 0.5f32.ln()]);
        let total = counts.iter().sum();
        assert_eq!(total, 10_000);
        for (count, share) in counts.into_iter().zip([0.5, 0.3, 0.2]) {
            assert!(near(count, total, share), "{rule:?}, drafts {drafts}: {counts:?}");
        }
        rates.push(accepted);
    }
    // One draft a request is verified; the overlap of the laws is 0.7.
    assert_eq!(rates[0], 0);
    assert!(near(rates[1], 5_000, 0.7) && near(rates[2], 5_000, 0.7), "{rates:?}");
}

/// After 1 another law than after 0 and 2.
fn after_one_otherwise(id: u32, _: u64) -> Vec<f32> {
    shares(id as usize).map(|share| (share as f32).ln()).to_vec()
}

fn shares(id: usize) -> [f64; 3] {
    if id == 1 { [0.2, 0.5, 0.3] } else { [0.5, 0.3, 0.2] }
}

/// How sure the stages are of a token after id 0, 1 or 2: a block goes on after 1 alone.
fn sure_after_one(previous: u32) -> f32 {
    if previous == 1 { 0.95 } else { 0.55 }
}

/// Counts whole answers of four tokens and compares each with what the law says; says what was
/// drafted for them.
fn check_answers(rule: Rule, least_survival: f64) -> Work {
    let draft: Law = |_, _| vec![0.25f32.ln(), 0.5f32.ln(), 0.25f32.ln()];
    let options = EngineOptions { sequences: 64, step_tokens: 512, least_survival, ..options() };
    let laws: (Law, Law) = (after_one_otherwise, draft);
    let mut engine = confident_engine((3, rule), laws, sure_after_one, options);
    let make = |seed| {
        let (seed, temperature) = (Some(seed), 1.0);
        let sampling = SamplingParameters { temperature, seed, ..Default::default() };
        Request { prompt: vec![0], ..request(sampling, 4, true) }
    };
    let mut counts = [[[[0u64; 3]; 3]; 3]; 3];
    for answer in answers(&mut engine, (0..20_000).map(make).collect()) {
        let [a, b, c, d] = answer.tokens[..] else { panic!("four tokens") };
        counts[a as usize][b as usize][c as usize][d as usize] += 1;
    }
    for answer in 0..81 {
        let [a, b, c, d] = [27, 9, 3, 1].map(|of| answer / of % 3);
        let share = shares(0)[a] * shares(a)[b] * shares(b)[c] * shares(c)[d];
        let count = counts[a][b][c][d];
        assert!(near(count, 20_000, share), "{rule:?}: {a} {b} {c} {d} {count} times");
    }
    engine.work()
}

/// Tokens that two blocks have a say in are drawn from the law too.
#[test]
fn c052_one_block_after_another_keeps_the_law() {
    for rule in [Rule::Standard, Rule::Block] {
        let work = check_answers(rule, 0.0);
        assert!(work.accepted_tokens > 10_000 && work.accepted_tokens < work.drafted_tokens);
    }
}

/// Where a block ends depends on the tokens drafted, and answers have their law all the same.
#[test]
fn c052_drafts_that_are_cut_keep_the_law() {
    for rule in [Rule::Standard, Rule::Block] {
        let work = check_answers(rule, 0.5);
        // Some blocks are cut at one draft, others go on.
        assert!(work.drafted_tokens > work.verifications, "{work:?}");
        assert!(work.drafted_tokens < 2 * work.verifications, "{work:?}");
    }
}

#[test]
fn unsure_drafts_go_unverified_and_greedy_tokens_stay() {
    let laws: (Law, Law) = (scattered, scattered);
    let run = |least_survival, confidence| {
        let options = EngineOptions { least_survival, ..options() };
        let mut engine = confident_engine((17, Rule::Block), laws, confidence, options);
        let asked = request(SamplingParameters::default(), 12, true);
        let answer = answers(&mut engine, vec![asked]).remove(0);
        (answer.tokens, answer.usage.drafted_tokens, engine.work().verifications)
    };
    let (plain, drafted, verifications) = run(0.0, |_| 0.01);
    assert!(drafted > verifications, "all of a block without a limit");
    let (tokens, drafted, verifications) = run(0.65, |_| 0.9);
    // 0.9 to the fourth is 0.656.
    assert_eq!(tokens, plain);
    assert!(drafted > 3 * verifications && drafted <= 4 * verifications, "{drafted}");
    assert_eq!(run(0.95, |_| 0.9), (plain.clone(), 0, 0));
    assert_eq!(run(0.5, |_| f32::NAN), (plain, 0, 0));
}

#[test]
fn c053_filters_hold_with_drafts() {
    let sampling = SamplingParameters { temperature: 1.0, top_k: 2, ..Default::default() };
    for drafts in [false, true] {
        let (counts, _) = counts(Rule::Standard, drafts, &sampling, zero_one_two);
        assert_eq!((counts[2], counts[0] + counts[1]), (0, 10_000));
        assert!(near(counts[0], 10_000, 0.625), "{counts:?}");
    }
    // At temperature 2 shares go with the roots.
    let tempered = SamplingParameters { temperature: 2.0, ..Default::default() };
    let roots = [0.5f64, 0.3, 0.2].map(f64::sqrt);
    let (counts, _) = counts(Rule::Block, true, &tempered, zero_one_two);
    for (count, root) in counts.into_iter().zip(roots) {
        assert!(near(count, 10_000, root / roots.iter().sum::<f64>()), "{counts:?}");
    }
}

#[test]
fn c077_limits_at_the_edges() {
    let greedy =
        one((17, Rule::Standard), (scattered, scattered), SamplingParameters::default(), true);
    let sampled = |change: fn(&mut SamplingParameters)| {
        let mut sampling =
            SamplingParameters { temperature: 0.9, seed: Some(5), ..Default::default() };
        change(&mut sampling);
        one((17, Rule::Standard), (scattered, scattered_otherwise), sampling, false).tokens
    };
    let free = sampled(|_| {});
    let unlimited: [fn(&mut SamplingParameters); 3] =
        [|p| p.top_k = 18, |p| p.top_k = 17, |p| p.top_k = -1];
    for change in unlimited {
        assert_eq!(sampled(change), free);
    }
    assert_eq!(sampled(|p| p.top_k = 1), greedy.tokens);
    assert_eq!(sampled(|p| p.temperature = 1e-9), greedy.tokens);
    assert_eq!(sampled(|p| p.top_p = 1e-6), greedy.tokens);
    assert_ne!(free, greedy.tokens);
}

#[test]
fn c075_the_neighbours_of_a_seed_do_not_matter() {
    let sampling = SamplingParameters { temperature: 0.8, seed: Some(42), ..Default::default() };
    for drafts in [false, true] {
        let laws: (Law, Law) = (scattered, scattered_otherwise);
        let alone = one((17, Rule::Block), laws, sampling.clone(), drafts).tokens;
        let mut busy = engine((17, Rule::Block), laws, options());
        let other = |seed| SamplingParameters { temperature: 1.1, seed, ..Default::default() };
        let requests = vec![
            request(other(None), 30, true),
            request(sampling.clone(), 12, drafts),
            request(other(Some(7)), 9, false),
            request(sampling.clone(), 12, drafts),
        ];
        let answers = answers(&mut busy, requests);
        assert_eq!((&answers[1].tokens, &answers[3].tokens), (&alone, &alone));
    }
}

#[test]
fn rows_that_are_no_numbers_fail_alone() {
    // After token 5 nothing is a number.
    let poisonous: Law = |id, at| match id {
        5 => vec![f32::NAN; 17],
        _ => scattered(id, at),
    };
    let right =
        one((17, Rule::Standard), (scattered, scattered), SamplingParameters::default(), false);
    let poisoned = right.tokens.iter().position(|id| *id == 5);
    for draft in [poisonous, |_, _| vec![f32::NAN; 17]] {
        for drafts in [false, true] {
            let mut engine = engine((17, Rule::Standard), (poisonous, draft), options());
            let good = request(SamplingParameters::default(), 12, drafts);
            let bad = Request { prompt: vec![0, 5], ..good.clone() };
            let answers = answers(&mut engine, vec![bad, good]);
            assert_eq!(answers[0].finish, Some(FinishReason::NotANumber));
            assert!(answers[0].tokens.is_empty());
            let length = poisoned.map_or(12, |at| at + 1);
            assert_eq!(answers[1].tokens, right.tokens[..length]);
        }
    }
}

#[test]
fn penalties_and_biases_see_the_drafts_before_them() {
    // Without a penalty the answer is 0 for ever.
    let sampling = SamplingParameters { frequency_penalty: 0.4, ..Default::default() };
    let plain = one((3, Rule::Standard), (two_one_zero, zero_one_two), sampling.clone(), false);
    // Worked by hand; at the twelfth 0 and 2 are a rounding apart.
    assert_eq!(plain.tokens[..11], [0, 0, 0, 1, 0, 1, 0, 1, 0, 2, 1]);
    for draft in [two_one_zero as Law, zero_one_two] {
        let drafted = one((3, Rule::Standard), (two_one_zero, draft), sampling.clone(), true);
        assert_eq!(drafted.tokens, plain.tokens);
    }
    let biased = SamplingParameters { logit_bias: vec![(2, 2.5)], ..Default::default() };
    let answer = one((3, Rule::Standard), (two_one_zero, two_one_zero), biased, true);
    assert_eq!(answer.tokens, [2; 12]);
    // The prompt is 0 1: both are divided by 2, so 0 at 1.0 still leads.
    let repeated = SamplingParameters { repetition_penalty: 2.0, ..Default::default() };
    let answer = one((3, Rule::Standard), (two_one_zero, zero_one_two), repeated, true);
    assert_eq!(answer.tokens, [0; 12]);
}
