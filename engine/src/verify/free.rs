//! Gate G4: whole prompts run freely, judged by what they say.

use crate::error::Result;

use super::subject::{Laid, Subject};
use super::{Array, GoldenFile, Limit, Report, equal_share, percentile};
use crate::exec::PictureSpan;

/// Prompts from this length on are judged; shorter ones are reported.
const JUDGED_TOKENS: usize = 200;
const GAP_MEAN: f64 = 0.08;
const GAP_P99: f64 = 0.6;
const FIRST_LAYER_EQUAL: f64 = 0.99;
const ALL_LAYERS_EQUAL: f64 = 0.945;
const PERPLEXITY_WITHIN: f64 = 0.01;
/// Greedy steps are compared up to the first whose best two logits are closer than this.
const CLEAR_MARGIN: f32 = 0.5;

/// What one free run gives.
struct Run {
    /// `[tokens, vocab]`.
    logits: Array<f32>,
    /// Per layer, `[tokens, top k]`.
    experts: Vec<Array<i32>>,
}

/// Compare the logits, experts and greedy continuation of a golden prompt.
///
/// # Errors
/// When the file has tensors of another model, or the device fails.
pub fn compare(
    subject: &mut Subject,
    file: &GoldenFile,
    pictures: &[PictureSpan],
    report: &mut Report,
) -> Result<()> {
    let mut ids: Vec<u32> = file.ids()?.values.iter().map(|id| *id as u32).collect();
    let prompt = ids.len();
    let greedy = file.integers("greedy")?;
    // The last golden token is compared, not fed.
    let fed = greedy.iter().flat_map(|g| g.values.iter().take(g.len().saturating_sub(1)));
    ids.extend(fed.map(|id| *id as u32));
    let run = run(subject, &ids, pictures)?;
    compare_logits(&run, file, prompt, report)?;
    compare_experts(&run, file, prompt, report)?;
    compare_greedy(&run, file, prompt, report)
}

fn limit(prompt: usize, limit: Limit) -> Limit {
    if prompt >= JUDGED_TOKENS { limit } else { Limit::None }
}

fn run(subject: &mut Subject, ids: &[u32], pictures: &[PictureSpan]) -> Result<Run> {
    let laid = subject.lay(ids, pictures)?;
    let t = subject.layers(&laid)?;
    let (model, lane) = (subject.model(), subject.lane());
    model.start(lane, &laid.batch, &t)?;
    let mut experts = vec![];
    for layer in 0..subject.config().layers {
        model.layer(layer).forward(lane, &laid.batch, subject.caches(), &t)?;
        let k = t.block.moe.expert.shape()[1] as usize;
        let values = subject.integers(&t.block.moe.expert)?;
        experts.push(Array { shape: vec![ids.len(), k], values });
    }
    let outcome = model.finish(lane, &laid.batch, t, subject.scratch())?;
    let vocab = subject.config().vocab_size;
    let logits = Array { shape: vec![ids.len(), vocab], values: subject.reals(&outcome.logits)? };
    let Laid { mut pages, step, .. } = laid;
    pages.commit(step, 0);
    Ok(Run { logits, experts })
}

/// `ln Σ exp(l)`.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|l| (f64::from(*l) - f64::from(largest)).exp()).sum();
    f64::from(largest) + sum.ln()
}

fn compare_logits(run: &Run, file: &GoldenFile, prompt: usize, report: &mut Report) -> Result<()> {
    let name = file.name();
    let (Some(ids), Some(best), Some(lse)) =
        (file.integers("top16_ids")?, file.reals("top16_logits")?, file.reals("logsumexp")?)
    else {
        report.skip(name, None, "top16_ids, top16_logits, logsumexp");
        return Ok(());
    };
    let mut gaps = vec![];
    for t in 0..prompt {
        let (logits, golden_lse) = (run.logits.at(t), f64::from(lse.values[t]));
        let own_lse = log_sum_exp(logits);
        for (id, golden) in ids.at(t).iter().zip(best.at(t)) {
            let own = f64::from(logits[*id as usize]) - own_lse;
            gaps.push((own - (f64::from(*golden) - golden_lse)).abs());
        }
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let tail = percentile(&gaps, 0.99);
    report.add(
        name,
        None,
        "log-prob gap of best 16, mean",
        mean,
        limit(prompt, Limit::AtMost(GAP_MEAN)),
    );
    report.add(
        name,
        None,
        "log-prob gap of best 16, p99",
        tail,
        limit(prompt, Limit::AtMost(GAP_P99)),
    );
    Ok(())
}

fn compare_experts(run: &Run, file: &GoldenFile, prompt: usize, report: &mut Report) -> Result<()> {
    let name = file.name();
    let Some(golden) = file.integers("expert_ids")? else {
        report.skip(name, None, "expert_ids");
        return Ok(());
    };
    let k = golden.shape[2];
    let rows = |layer: usize| {
        let own = run.experts[layer].values[..prompt * k].chunks(k);
        own.zip(golden.at(layer).chunks(k))
    };
    let first = equal_share(rows(0));
    report.add(
        name,
        Some(0),
        "free experts equal",
        first,
        limit(prompt, Limit::AtLeast(FIRST_LAYER_EQUAL)),
    );
    let all = equal_share((0..golden.len()).flat_map(rows));
    report.add(
        name,
        None,
        "free experts equal, all layers",
        all,
        limit(prompt, Limit::AtLeast(ALL_LAYERS_EQUAL)),
    );
    Ok(())
}

fn compare_greedy(run: &Run, file: &GoldenFile, prompt: usize, report: &mut Report) -> Result<()> {
    let name = file.name();
    let (Some(greedy), Some(margin)) = (file.integers("greedy")?, file.reals("greedy_margin")?)
    else {
        report.skip(name, None, "greedy, greedy_margin");
        return Ok(());
    };
    let clear = margin.values.iter().take_while(|m| **m >= CLEAR_MARGIN).count();
    let agrees = |step: &usize| argmax(run.logits.at(prompt - 1 + step)) == greedy.values[*step];
    let agreed = (0..clear).take_while(agrees).count();
    let what = format!("greedy steps agreed, of {clear} clear");
    let bound = Limit::AtLeast(clear as f64);
    report.add(name, None, what, agreed as f64, limit(prompt, bound));
    Ok(())
}

/// The largest logit, the lower id on ties.
pub(super) fn argmax(logits: &[f32]) -> i32 {
    let best = logits
        .iter()
        .enumerate()
        .fold((0, f32::NEG_INFINITY), |best, (id, l)| if *l > best.1 { (id, *l) } else { best });
    best.0 as i32
}

/// Mean negative log-likelihood of held-out passages against the golden ones.
///
/// # Errors
/// When a passage has ids of another vocabulary, or the device fails.
pub fn perplexity(
    subject: &mut Subject,
    (name, ids, golden): (&str, &[u32], f64),
    report: &mut Report,
) -> Result<()> {
    let run = run(subject, ids, &[])?;
    let losses = ids.windows(2).enumerate().map(|(t, pair)| {
        let logits = run.logits.at(t);
        log_sum_exp(logits) - f64::from(logits[pair[1] as usize])
    });
    let mean = losses.sum::<f64>() / (ids.len() - 1) as f64;
    let gap = (mean - golden).abs();
    report.add(
        "perplexity",
        None,
        format!("{name}: nats from golden"),
        gap,
        Limit::AtMost(PERPLEXITY_WITHIN),
    );
    Ok(())
}
