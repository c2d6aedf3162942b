//! The tokens of a draft, one place of the block after the other.

use crate::error::Result;
use crate::exec::{DraftBatch, Drafter, EngineOptions, Geometry, Staging};
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
pub(crate) struct DraftSampler {
    block: u64,
    filter: Plan<Filter>,
    draw: Plan<Draw>,
    staging: Staging,
    laws: Laws,
    /// `[block * sequences]` i32.
    token: View,
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
        let shapes: [(Enc, &[u64]); 3] =
            [(Enc::F32, &[rows, vocab]), (Enc::I32, &[rows]), (Enc::U8, &[workspace_bytes])];
        let bytes = shapes.iter().map(|(enc, shape)| View::reserved_bytes(*enc, shape)).sum();
        let mut arena = Arena::new(device, bytes, "drafts")?;
        let [q, token, workspace] = shapes.map(|(enc, shape)| arena.view(enc, shape));
        let per_sequence = [options.sequences; 4];
        let lists = per_sequence.into_iter().chain([rows]);
        Ok(Self {
            block,
            filter,
            draw,
            staging: Staging::new(device, "draft sampling lists", lists)?,
            laws: Laws { q: q?, sequences: 0 },
            token: token?,
            workspace: workspace?,
        })
    }

    /// The laws of the last draft.
    pub(crate) fn laws(&self) -> &Laws {
        &self.laws
    }

    /// Draws a block for each sequence from `logits` `[block * sequences, vocab]`, to which `bias`
    /// adds what the token before has to say. Launches only; the block is read by
    /// [`DraftSampler::read`].
    pub(crate) fn draw(
        &self,
        logits: &View,
        batch: &DraftBatch,
        StagedDraft { filters, uniform }: &StagedDraft,
        bias: &dyn Fn(&View, &View) -> Result<()>,
        on: &dyn Stream,
    ) -> Result<()> {
        let sequences = batch.sequences;
        let lane = Lane { stream: on, workspace: &self.workspace, side: None };
        let mut previous = batch.id.rows(0..sequences)?;
        for place in 0..self.block {
            let rows = place * sequences..(place + 1) * sequences;
            let logits = logits.rows(rows.clone())?;
            let (p, token) = (self.laws.q.rows(rows.clone())?, self.token.rows(rows.clone())?);
            bias(&previous, &logits)?;
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
    /// place whose logits are no numbers.
    pub(crate) fn read(&self, drafters: usize, on: &dyn Stream) -> Result<Vec<Vec<u32>>> {
        let sequences = self.laws.sequences;
        let tokens = read::i32(&self.token.rows(0..self.block * sequences)?, on)?;
        let block = |slot: usize| {
            let column = tokens.iter().skip(slot).step_by(sequences as usize);
            column.map_while(|token| u32::try_from(*token).ok()).collect()
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
