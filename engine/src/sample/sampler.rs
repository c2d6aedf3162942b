//! The operators between logits and tokens.

use super::filter_lists::{FilterLists, FilterViews};
use super::log_prober::LogProber;
use super::masker::Masker;
use super::penaliser::Penaliser;
use super::{Purpose, read};
use crate::error::Result;
use crate::exec::{DraftSource, EngineOptions, Geometry, Sample, Sampled, Staging};
use crate::spec::{Laws, Verifier};
use tandem_hal::{
    Arena, Device, Draw, DrawIo, Enc, Extents, Filter, FilterIo, Lane, Plan, Rule, Stream, Sym,
    View, Want,
};

/// Samples the outputs of a step. Outputs are independent rows, so what a request gets does not
/// depend on the others.
pub(crate) struct Sampler {
    vocab: u64,
    block: u64,
    filter: Plan<Filter>,
    draw: Plan<Draw>,
    penaliser: Penaliser,
    masker: Masker,
    /// `None` where drafts are looked up.
    verifier: Option<Verifier>,
    log_prober: LogProber,
    staging: Staging,
    /// `[outputs, vocab]` f32.
    p: View,
    /// `[outputs]` i32.
    token: View,
    workspace: View,
}

/// Where the laws of a step's outputs lie, and the numbers that they are drawn with.
pub(crate) struct StagedLaws {
    filters: FilterViews,
    uniform: View,
}

impl Sampler {
    pub(crate) fn new(
        device: &dyn Device,
        geometry: &Geometry,
        options: &EngineOptions,
        rule: Rule,
    ) -> Result<Self> {
        let (vocab, block) = (geometry.vocab, options.block(geometry));
        let outputs = options.outputs(geometry);
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, outputs)]));
        let filter = device.plan(Filter { vocab }, &want)?;
        let draw = device.plan(Draw { vocab }, &want)?;
        let penaliser = Penaliser::new(device, geometry, options)?;
        let masker = Masker::new(device, geometry, options)?;
        let log_prober = LogProber::new(device, vocab, outputs)?;
        let verifier = match (block, options.drafts) {
            (0, _) | (_, DraftSource::Ngram) => None,
            _ => Some(Verifier::new(device, geometry, options.sequences, rule)?),
        };
        let needs = [
            filter.workspace_bytes(),
            draw.workspace_bytes(),
            penaliser.workspace_bytes(),
            masker.workspace_bytes(),
            log_prober.workspace_bytes(),
            verifier.as_ref().map_or(0, Verifier::workspace_bytes),
        ];
        let workspace_bytes = needs.into_iter().max().unwrap_or(0).max(1);
        let shapes: [(Enc, &[u64]); 3] =
            [(Enc::F32, &[outputs, vocab]), (Enc::I32, &[outputs]), (Enc::U8, &[workspace_bytes])];
        let bytes = shapes.iter().map(|(enc, shape)| View::reserved_bytes(*enc, shape)).sum();
        let mut arena = Arena::new(device, bytes, "sampling")?;
        let [p, token, workspace] = shapes.map(|(enc, shape)| arena.view(enc, shape));
        Ok(Self {
            vocab,
            block,
            filter,
            draw,
            penaliser,
            masker,
            verifier,
            log_prober,
            staging: Staging::new(device, "sampling lists", [outputs; 5])?,
            p: p?,
            token: token?,
            workspace: workspace?,
        })
    }

    /// Uploads what tells the laws of `samples` and draws from them, before there are logits: between
    /// their kernels and those here a copy would be waited for twice.
    pub(crate) fn stage(
        &mut self,
        samples: &[Sample<'_>],
        outputs: u64,
        on: &dyn Stream,
    ) -> Result<StagedLaws> {
        let (mut lists, mut uniform) = (FilterLists::default(), Vec::new());
        for sample in samples {
            let rows = if sample.drafts.is_empty() { 1 } else { self.block + 1 };
            for row in 0..rows {
                lists.push(sample.parameters, self.vocab);
                uniform.push(sample.draws.uniform(sample.position + row, Purpose::Token));
            }
        }
        lists.pad(outputs);
        uniform.resize(outputs as usize, 0.5);
        self.staging.clear();
        let filters = lists.stage(&mut self.staging)?;
        let uniform = self.staging.f32(&uniform, &[outputs])?;
        self.staging.flush(on)?;
        Ok(StagedLaws { filters, uniform })
    }

    /// Picks the tokens of `samples`, whose rows of `logits` `[outputs, vocab]` lie in order and whose
    /// laws are `staged`. Penalties, biases and masks change `logits` in place.
    pub(crate) fn sample(
        &mut self,
        logits: &View,
        samples: &[Sample<'_>],
        (staged, laws): (&StagedLaws, &Laws),
        on: &dyn Stream,
    ) -> Result<Vec<Sampled>> {
        let outputs = logits.shape()[0];
        if samples.is_empty() {
            return Ok(Vec::new());
        }
        let lane = Lane { stream: on, workspace: &self.workspace, side: None };
        let firsts = self.firsts(samples);
        let mut raw = Vec::new();
        for (sample, first) in samples.iter().zip(&firsts) {
            if wants_raw(sample) {
                let rows = logits.rows(*first..first + 1 + sample.drafts.len() as u64)?;
                raw.push((on.read(&rows)?, rows));
            }
            if sample.parameters.changes_logits() {
                self.penaliser.run(logits, *first, sample, lane)?;
            }
            if !sample.masks.is_empty() {
                self.masker.run(logits, *first, sample, lane)?;
            }
        }
        let (p, token) = (self.p.rows(0..outputs)?, self.token.rows(0..outputs)?);
        self.draw_all(logits, staged, (&p, &token), on)?;
        let drawn = read::i32(&token, on)?;
        let lane = Lane { stream: on, workspace: &self.workspace, side: None };
        let verifying = samples.iter().take_while(|sample| !sample.drafts.is_empty()).count();
        let verified = match &mut self.verifier {
            Some(verifier) if verifying > 0 => {
                verifier.verify(&p, &samples[..verifying], laws, lane)?
            }
            _ => Vec::new(),
        };
        let answer = |(at, (first, sample)): (usize, (&u64, &Sample<'_>))| {
            let drawn = &drawn[*first as usize..];
            match verified.get(at) {
                Some(verified) => judged(drawn, *verified),
                None => matched(drawn, sample.drafts),
            }
        };
        let mut sampled: Vec<_> = firsts.iter().zip(samples).enumerate().map(answer).collect();
        // Nothing else is read from them any more.
        raw.iter().try_for_each(|(bytes, rows)| on.write(rows, bytes))?;
        self.add_log_probs(logits, samples, &firsts, &mut sampled, on)?;
        Ok(sampled)
    }

    /// The first output of each sample.
    fn firsts(&self, samples: &[Sample<'_>]) -> Vec<u64> {
        let mut next = 0;
        let first = |sample: &Sample<'_>| {
            let first = next;
            next += if sample.drafts.is_empty() { 1 } else { self.block + 1 };
            first
        };
        samples.iter().map(first).collect()
    }

    /// The law of every output, and a token from it, -1 for logits that are no numbers. Where drafts of
    /// the model's stages are verified that is all it tells.
    fn draw_all(
        &self,
        logits: &View,
        StagedLaws { filters, uniform }: &StagedLaws,
        (p, token): (&View, &View),
        on: &dyn Stream,
    ) -> Result<()> {
        let lane = Lane { stream: on, workspace: &self.workspace, side: None };
        let io = FilterIo {
            logits,
            temperature: &filters.temperature,
            top_k: &filters.top_k,
            top_p: &filters.top_p,
            min_p: &filters.min_p,
            p,
        };
        lane.run(&self.filter, io)?;
        Ok(lane.run(&self.draw, DrawIo { p, uniform, token })?)
    }

    fn add_log_probs(
        &mut self,
        logits: &View,
        samples: &[Sample<'_>],
        firsts: &[u64],
        sampled: &mut [Sampled],
        on: &dyn Stream,
    ) -> Result<()> {
        if samples.iter().all(|sample| sample.parameters.log_probs.is_none()) {
            return Ok(());
        }
        let mut tokens = vec![-1; logits.shape()[0] as usize];
        for ((sample, first), sampled) in samples.iter().zip(firsts).zip(&*sampled) {
            let accepted = &sample.drafts[..sampled.accepted as usize];
            let chosen = accepted.iter().copied().chain(sampled.token);
            for (token, id) in tokens[*first as usize..].iter_mut().zip(chosen) {
                *token = id as i32;
            }
        }
        let lane = Lane { stream: on, workspace: &self.workspace, side: None };
        let rows = self.log_prober.read(logits, &tokens, lane)?;
        for ((sample, first), sampled) in samples.iter().zip(firsts).zip(sampled) {
            let Some(top) = sample.parameters.log_probs else { continue };
            let count = sampled.accepted as usize + usize::from(sampled.token.is_some());
            let rows = &rows[*first as usize..*first as usize + count];
            sampled.log_probs = rows.iter().map(|row| row.cut(top)).collect();
        }
        Ok(())
    }
}

/// Whether logits of a sample are kept as they are before it changes them. Few requests do so: they
/// wait on the host rather than in a buffer as large as all outputs.
fn wants_raw(sample: &Sample<'_>) -> bool {
    let parameters = sample.parameters;
    let changes = parameters.changes_logits() || !sample.masks.is_empty();
    parameters.raw_log_probs && parameters.log_probs.is_some() && changes
}

/// The answer for a sample from what its rows drew, when some drafts stood and a token came after.
fn judged(drawn: &[i32], (accepted, after): (u64, i32)) -> Sampled {
    // The first row that is no law ends the block, whatever the rule made of it.
    match drawn[..=accepted as usize].iter().position(|token| *token < 0) {
        Some(bad) => Sampled { accepted: bad as u64, ..Sampled::default() },
        None => Sampled { accepted, token: u32::try_from(after).ok(), ..Sampled::default() },
    }
}

/// The answer for a sample whose drafts were drawn from no law, or that has none: they stand while
/// they are what their rows drew, and these are the very tokens that come without drafts.
fn matched(drawn: &[i32], drafts: &[u32]) -> Sampled {
    let same = |(drawn, draft): &(&i32, &u32)| u32::try_from(**drawn) == Ok(**draft);
    let accepted = drawn.iter().zip(drafts).take_while(same).count();
    let token = u32::try_from(drawn[accepted]).ok();
    Sampled { accepted: accepted as u64, token, ..Sampled::default() }
}
