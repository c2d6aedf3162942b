//! The tokens of a draft, one place of the block after the other.

use crate::error::Result;
use crate::exec::{DraftBatch, Drafter, EngineOptions, Geometry, Network, Staging};
use crate::sample::{FilterLists, FilterViews, Purpose, read};
use tandem_hal::{
    Arena, Device, Draw, DrawIo, Enc, Extents, Filter, FilterIo, Lane, Plan, Stream, Sym, View,
    Want,
};

/// The laws that the last draft was drawn from.
#[derive(Debug, Clone)]
pub(crate) struct Laws {
    /// `[block * sequences, vocab]` f32 at most; row `place * sequences + slot`.
    pub(crate) q: View,
    /// Sequences of that draft.
    pub(crate) sequences: u64,
}

/// The lists of a draft about to be drawn, at the same addresses for equally many sequences.
pub(crate) struct StagedDraft {
    filters: FilterViews,
    /// `[block * sequences]` f32.
    uniform: View,
}

/// Draws drafts. Tokens stay on the device until the block is done.
///
/// A block may end early, where the chance that all of it so far stands falls below
/// [`EngineOptions::least_survival`]. This leaves the law of answers as it is, under the standard
/// rule and under the block rule. Whether a place is verified depends on the confidences up to it,
/// and so on the tokens before it alone: a block that ends is one that any token after it would have
/// found ended. Both rules are right at each place given the tokens before it: by induction from
/// the end, all of a block up to a place stands with the probability that its tokens so far call
/// for, whether the block goes on there or not, and where it ends the token after it is the
/// target's. The confidence of a token itself, or the cut with the best outlook in hindsight, would
/// tell of the token drawn and favour some.
pub(crate) struct DraftSampler {
    block: u64,
    least_survival: f64,
    filter: Plan<Filter>,
    draw: Plan<Draw>,
    staging: Staging,
    laws: Laws,
    /// `[block * sequences]` i32.
    token: View,
    /// `[block * sequences]` f32 logits.
    confidence: View,
    workspace: View,
}

impl DraftSampler {
    pub(crate) fn new(
        device: &dyn Device,
        geometry: &Geometry,
        options: &EngineOptions,
    ) -> Result<Self> {
        let (vocab, block) = (geometry.vocab, geometry.draft_block);
        let rows = options.scratch_tokens(geometry).max(1);
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, options.sequences)]));
        let filter = device.plan(Filter { vocab }, &want)?;
        let draw = device.plan(Draw { vocab }, &want)?;
        let workspace_bytes = filter.workspace_bytes().max(draw.workspace_bytes()).max(1);
        let shapes: [(Enc, &[u64]); 4] = [
            (Enc::F32, &[rows, vocab]),
            (Enc::I32, &[rows]),
            (Enc::F32, &[rows]),
            (Enc::U8, &[workspace_bytes]),
        ];
        let bytes = shapes.iter().map(|(enc, shape)| View::reserved_bytes(*enc, shape)).sum();
        let mut arena = Arena::new(device, bytes, "drafts")?;
        let [q, token, confidence, workspace] = shapes.map(|(enc, shape)| arena.view(enc, shape));
        let per_sequence = [options.sequences; 4];
        let lists = per_sequence.into_iter().chain([rows]);
        Ok(Self {
            block,
            least_survival: options.least_survival,
            filter,
            draw,
            staging: Staging::new(device, "draft sampling lists", lists)?,
            laws: Laws { q: q?, sequences: 0 },
            token: token?,
            confidence: confidence?,
            workspace: workspace?,
        })
    }

    /// The laws of the last draft.
    pub(crate) fn laws(&self) -> &Laws {
        &self.laws
    }

    /// Draws a block for each sequence from what the stages of `network` make of `batch`. Launches
    /// only; the block is read by [`DraftSampler::read`].
    pub(crate) fn draw(
        &self,
        network: &impl Network,
        batch: &DraftBatch,
        StagedDraft { filters, uniform }: &StagedDraft,
        on: &dyn Stream,
    ) -> Result<()> {
        let drafted = network.draft(batch, on)?;
        let sequences = batch.sequences;
        let lane = Lane { stream: on, workspace: &self.workspace, side: None };
        let mut previous = batch.id.rows(0..sequences)?;
        for place in 0..self.block {
            let rows = place * sequences..(place + 1) * sequences;
            let logits = drafted.logits.rows(rows.clone())?;
            let (p, token) = (self.laws.q.rows(rows.clone())?, self.token.rows(rows.clone())?);
            network.bias(&previous, &logits, on)?;
            if self.least_survival > 0.0 {
                let y = self.confidence.rows(rows.clone())?;
                network.confidence(&drafted, rows.clone(), (&previous, &y), on)?;
            }
            let io = FilterIo {
                logits: &logits,
                temperature: &filters.temperature,
                top_k: &filters.top_k,
                top_p: &filters.top_p,
                min_p: &filters.min_p,
                p: &p,
            };
            lane.run(&self.filter, io)?;
            let uniform = uniform.rows(rows)?;
            lane.run(&self.draw, DrawIo { p: &p, uniform: &uniform, token: &token })?;
            previous = token;
        }
        Ok(())
    }

    /// The first `drafters` blocks of the draft that was staged last. A block ends before the first
    /// place whose logits are no numbers, or that is less likely to be reached and to stand than is
    /// asked for.
    pub(crate) fn read(&self, drafters: usize, on: &dyn Stream) -> Result<Vec<Vec<u32>>> {
        let sequences = self.laws.sequences;
        let tokens = read::i32(&self.token.rows(0..self.block * sequences)?, on)?;
        let confidence = match self.least_survival > 0.0 {
            true => read::f32(&self.confidence.rows(0..self.block * sequences)?, on)?,
            false => vec![f32::INFINITY; tokens.len()],
        };
        let block = |slot: usize| {
            let column = slot..tokens.len();
            let survivals =
                survivals(column.clone().step_by(sequences as usize).map(|at| confidence[at]));
            let column = column.step_by(sequences as usize).zip(survivals);
            let likely = column.take_while(|(_, survival)| *survival >= self.least_survival);
            likely.map_while(|(at, _)| u32::try_from(tokens[at]).ok()).collect()
        };
        Ok((0..drafters).map(block).collect())
    }

    /// Uploads what drawing for the drafters, padded to `sequences`, needs to know of them.
    pub(crate) fn stage(
        &mut self,
        drafters: &[Drafter],
        sequences: u64,
        on: &dyn Stream,
    ) -> Result<StagedDraft> {
        self.laws.sequences = sequences;
        let mut lists = FilterLists::default();
        drafters.iter().for_each(|drafter| lists.push_tempered(drafter.temperature));
        lists.pad(sequences);
        let mut uniform = Vec::new();
        for place in 0..self.block {
            let draw = |drafter: &Drafter| {
                let at = (drafter.position, place as u32);
                drafter.draws.uniform_of_block(at, Purpose::Draft)
            };
            uniform.extend(drafters.iter().map(draw));
            uniform.resize(((place + 1) * sequences) as usize, 0.5);
        }
        self.staging.clear();
        let filters = lists.stage(&mut self.staging)?;
        let uniform = self.staging.f32(&uniform, &[self.block * sequences])?;
        self.staging.flush(on)?;
        Ok(StagedDraft { filters, uniform })
    }
}

/// For each place of a block, how likely it is that it and all before it stand.
fn survivals(logits: impl Iterator<Item = f32>) -> impl Iterator<Item = f64> {
    logits.scan(1.0, |survival, logit| {
        *survival /= 1.0 + (-f64::from(logit)).exp();
        Some(*survival)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survival_is_the_product_of_confidences() {
        let chance = |p: f32| (p / (1.0 - p)).ln();
        let got: Vec<_> = survivals([0.9, 0.8, 0.7].map(chance).into_iter()).collect();
        for (got, right) in got.iter().zip([0.9, 0.72, 0.504]) {
            assert!((got - right).abs() < 1e-6, "{got}");
        }
        let sure: Vec<_> = survivals([f32::INFINITY, 0.0, f32::NEG_INFINITY].into_iter()).collect();
        assert_eq!(sure, [1.0, 0.5, 0.0]);
        // What is no number is never enough.
        assert!(survivals([f32::NAN, 9.0].into_iter()).all(f64::is_nan));
    }
}
