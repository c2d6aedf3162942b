//! Gate G2: one draft block from golden captured features.

use tandem_hal::{Arena, Enc, View};

use crate::error::Result;
use crate::exec::{Anchor, DraftLists};
use crate::kv::SequencePages;

use super::free::argmax;
use super::subject::{Laid, Subject, bf16_bytes, f32_bytes, int_bytes};
use super::{GoldenFile, Limit, Report, relative_distance};

const HIDDEN_DISTANCE: f64 = 5e-3;
/// Drafted tokens must agree where the golden logits' best two are further apart than this.
const CLEAR_MARGIN: f32 = 0.05;
/// Golden files whose draft is judged: those whose features cover the whole prompt.
const FEATURES: &str = "captured_tail";

/// Compare a draft after the prompt. Files without one, or whose features do not reach back to the
/// start of the window, are noted.
///
/// # Errors
/// When the file has tensors of another model, or the device fails.
pub fn compare(subject: &mut Subject, file: &GoldenFile, report: &mut Report) -> Result<()> {
    let name = file.name();
    let ids: Vec<u32> = file.ids()?.values.iter().map(|id| *id as u32).collect();
    let (Some(features), Some(hidden), Some(logits), Some(tokens), Some(greedy)) = (
        file.reals(FEATURES)?,
        file.reals("draft_hidden")?,
        file.reals("draft_logits")?,
        file.integers("draft_tokens")?,
        file.integers("greedy")?,
    ) else {
        report.skip(name, None, "captured_tail and draft_*");
        return Ok(());
    };
    if subject.model().drafter().is_none() {
        report.skip(name, None, "the model has no draft stages for draft_*");
        return Ok(());
    }
    let anchor = greedy.values[0] as u32;
    let drafted = draft(subject, &ids, &features.values, anchor)?;
    let distance = relative_distance(&drafted.hidden, &hidden.values);
    report.add(name, None, "draft hidden, rel-L2", distance, Limit::AtMost(HIDDEN_DISTANCE));
    let clear = |i: usize| top_gap(logits.at(i)) > CLEAR_MARGIN;
    let places = (0..tokens.len()).filter(|i| clear(*i));
    let unequal = places.filter(|i| drafted.tokens[*i] != tokens.values[*i]).count();
    report.add(name, None, "clear draft tokens unequal", unequal as f64, Limit::AtMost(0.0));
    if let Some(golden) = file.reals("draft_confidence_logits")? {
        let gap = drafted.confidence.iter().zip(&golden.values).map(|(a, b)| (a - b).abs());
        let worst = gap.fold(0.0, f32::max);
        report.add(name, None, "confidence logits, largest gap", f64::from(worst), Limit::None);
    }
    Ok(())
}

/// Distance of the best two.
fn top_gap(logits: &[f32]) -> f32 {
    let best = argmax(logits);
    let others = logits.iter().enumerate().filter(|(id, _)| *id as i32 != best);
    logits[best as usize] - others.map(|(_, l)| *l).fold(f32::NEG_INFINITY, f32::max)
}

struct Drafted {
    hidden: Vec<f32>,
    tokens: Vec<i32>,
    confidence: Vec<f32>,
}

fn draft(subject: &mut Subject, ids: &[u32], features: &[f32], anchor: u32) -> Result<Drafted> {
    let laid = subject.lay(ids, &[])?;
    store_context(subject, &laid, features)?;
    let Laid { mut pages, step, .. } = laid;
    pages.commit(step, ids.len() as u64);
    let batch = upload(subject, &pages, anchor)?;
    let geometry = subject.geometry();
    let (block, vocab) = (geometry.draft_block, geometry.vocab);
    let (lane, caches) = (subject.lane(), subject.caches());
    let both = subject.model().drafter().zip(subject.scratch().draft.as_ref());
    let (drafter, scratch) = both.expect("the caller has looked for a drafter");
    let drafted = drafter.forward(lane, &batch, caches, scratch)?;
    let bytes = 2 * View::reserved_bytes(Enc::F32, &[1, vocab]) + 512;
    let mut arena = Arena::new(subject.device().as_ref(), bytes, "verify.draft")?;
    let (previous, row) = (arena.view(Enc::I32, &[1])?, arena.view(Enc::F32, &[1, vocab])?);
    let survival = arena.view(Enc::F32, &[1])?;
    let (mut tokens, mut confidence) = (vec![], vec![]);
    let mut last = anchor as i32;
    for place in 0..block {
        subject.stream().write(&previous, &int_bytes(&[last]))?;
        let logits = subject.reals(&drafted.logits.rows(place..place + 1)?)?;
        subject.stream().write(&row, &f32_bytes(&logits))?;
        drafter.bias(lane, &previous, &row)?;
        let hidden = drafted.hidden.rows(place..place + 1)?;
        drafter.confidence(lane, &hidden, &previous, &survival)?;
        confidence.extend(subject.reals(&survival)?);
        last = argmax(&subject.reals(&row)?);
        tokens.push(last);
    }
    let hidden = subject.reals(&drafted.hidden)?;
    Ok(Drafted { hidden, tokens, confidence })
}

/// Context entries of the positions that the features are of: the last ones.
fn store_context(subject: &Subject, laid: &Laid, features: &[f32]) -> Result<()> {
    let t = subject.layers(laid)?;
    let (Some(buffer), Some(scratch)) = (&t.features, &subject.scratch().draft) else {
        return Ok(());
    };
    let width = buffer.shape()[1] as usize;
    let (rows, tokens) = ((features.len() / width) as u64, laid.batch.tokens);
    let from = tokens - rows;
    let buffer = buffer.rows(0..rows)?;
    subject.stream().write(&buffer, &bf16_bytes(features))?;
    let at =
        (&laid.batch.position.rows(from..tokens)?, &laid.batch.window_store.rows(from..tokens)?);
    let drafter = subject.model().drafter();
    let drafter = drafter.expect("scratch of a draft is reserved for a drafter");
    drafter.context(subject.lane(), &buffer, at, subject.caches(), scratch)
}

fn upload(
    subject: &mut Subject,
    pages: &SequencePages,
    anchor: u32,
) -> Result<crate::exec::DraftBatch> {
    let block = subject.geometry().draft_block;
    let own = subject.pools().scratch(block).map_err(|short| crate::Error::Internal {
        invariant: format!("pages for one draft: {short}"),
    })?;
    let lists = DraftLists::new(&[Anchor { id: anchor, pages }], 1, &own, subject.geometry());
    let (buffer, on) = subject.buffer();
    buffer.upload_draft(&lists, on)
}
