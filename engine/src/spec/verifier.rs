//! Which drafts stand, and the token after them.

use super::Laws;
use crate::error::Result;
use crate::exec::{Geometry, Sample, Staging};
use crate::sample::{Purpose, read};
use tandem_hal::{
    Arena, Device, Elem, Enc, Extents, GatherRows, GatherRowsIo, Lane, Plan, Real, Rule, Sym,
    Verify, VerifyIo, View, Want,
};

/// Verifies the drafts of many sequences at once.
///
/// Under any rule a greedy request's drafts stand while they equal the largest logit: its laws are
/// all in one token. So a step whose requests are all greedy takes the greedy rule, which reads no
/// draft laws, and gets the same answer.
pub(crate) struct Verifier {
    vocab: u64,
    block: u64,
    gather: Plan<GatherRows>,
    greedy: Plan<Verify>,
    sampled: Plan<Verify>,
    staging: Staging,
    /// `[sequences * block, vocab]` f32.
    q: View,
    /// `[sequences]` i32.
    accepted: View,
    /// `[sequences]` i32.
    token: View,
}

impl Verifier {
    pub(crate) fn new(
        device: &dyn Device,
        geometry: &Geometry,
        sequences: u64,
        rule: Rule,
    ) -> Result<Self> {
        let (vocab, block) = (geometry.vocab, geometry.draft_block);
        let rows = sequences * block;
        let limits = [(Sym::Tokens, rows), (Sym::Outputs, rows), (Sym::Sequences, sequences)];
        let want = Want::row_invariant(Extents::of(&limits));
        let verify = |rule| Verify { vocab, block, rule, rate: Real::new(0.0) };
        let shapes: [(Enc, &[u64]); 3] =
            [(Enc::F32, &[rows, vocab]), (Enc::I32, &[sequences]), (Enc::I32, &[sequences])];
        let bytes = shapes.iter().map(|(enc, shape)| View::reserved_bytes(*enc, shape)).sum();
        let mut arena = Arena::new(device, bytes, "verification")?;
        let [q, accepted, token] = shapes.map(|(enc, shape)| arena.view(enc, shape));
        let lists = [rows, rows, sequences, rows, sequences];
        Ok(Self {
            vocab,
            block,
            gather: device.plan(GatherRows { elem: Elem::F32, width: vocab }, &want)?,
            greedy: device.plan(verify(Rule::Greedy), &want)?,
            sampled: device.plan(verify(rule), &want)?,
            staging: Staging::new(device, "verification lists", lists)?,
            q: q?,
            accepted: accepted?,
            token: token?,
        })
    }

    pub(crate) fn workspace_bytes(&self) -> u64 {
        let needs = [
            self.gather.workspace_bytes(),
            self.greedy.workspace_bytes(),
            self.sampled.workspace_bytes(),
        ];
        needs.into_iter().max().unwrap_or(0)
    }

    /// For each sample the number of its drafts that stand and the token after them, -1 where the
    /// laws are none. `p` `[outputs, vocab]` begins with `block + 1` rows of each.
    pub(crate) fn verify(
        &mut self,
        p: &View,
        samples: &[Sample<'_>],
        laws: &Laws,
        lane: Lane<'_>,
    ) -> Result<Vec<(u64, i32)>> {
        let (sequences, block, vocab) = (samples.len() as u64, self.block, self.vocab);
        let lists = Lists::of(samples, block, laws.sequences);
        let to = &mut self.staging;
        to.clear();
        let places = to.i32(&lists.places, &[sequences * block])?;
        let draft = to.i32(&lists.draft, &[sequences, block])?;
        let length = to.i32(&lists.length, &[sequences])?;
        let uniform = to.f32(&lists.uniform, &[sequences, block])?;
        let draw = to.f32(&lists.draw, &[sequences])?;
        to.flush(lane.stream)?;
        let law = |rows: &View, per_sequence| {
            View::dense(rows.alloc(), rows.offset(), Enc::F32, &[sequences, per_sequence, vocab])
        };
        let uses_laws = matches!(self.sampled.descriptor().rule, Rule::Standard | Rule::Block);
        let all_greedy = samples.iter().all(|sample| sample.parameters.is_greedy());
        let (plan, q) = if all_greedy || !uses_laws {
            (if all_greedy { &self.greedy } else { &self.sampled }, View::absent(Enc::F32))
        } else {
            let y = self.q.rows(0..sequences * block)?;
            let x = laws.q.rows(0..laws.sequences * block)?;
            lane.run(&self.gather, GatherRowsIo { x: &x, at: &places, y: &y })?;
            (&self.sampled, law(&y, block)?)
        };
        let accepted = self.accepted.rows(0..sequences)?;
        let token = self.token.rows(0..sequences)?;
        let io = VerifyIo {
            p: &law(p, block + 1)?,
            q: &q,
            draft: &draft,
            length: &length,
            uniform: &uniform,
            draw: &draw,
            accepted: &accepted,
            token: &token,
        };
        lane.run(plan, io)?;
        let accepted = read::i32(&accepted, lane.stream)?;
        let token = read::i32(&token, lane.stream)?;
        // Never more than there were, whatever the device says.
        let stands = |(accepted, sample): (i32, &Sample<'_>)| {
            accepted.clamp(0, sample.drafts.len() as i32) as u64
        };
        Ok(accepted.into_iter().zip(samples).map(stands).zip(token).collect())
    }
}

/// What the rules need to know of the samples.
#[derive(Default)]
struct Lists {
    /// Rows of the drafts' laws.
    places: Vec<i32>,
    draft: Vec<i32>,
    length: Vec<i32>,
    uniform: Vec<f32>,
    draw: Vec<f32>,
}

impl Lists {
    fn of(samples: &[Sample<'_>], block: u64, drafted: u64) -> Self {
        let mut lists = Self::default();
        for sample in samples {
            let drafts = sample.drafts.len();
            for place in 0..block {
                let made = sample.drafts.get(place as usize);
                let row = (place * drafted + sample.draft_slot) as i32;
                lists.places.push(if made.is_some() { row } else { -1 });
                lists.draft.push(made.map_or(-1, |id| *id as i32));
                let at = (sample.position, place as u32);
                let uniform = sample.draws.uniform_of_block(at, Purpose::Accept);
                lists.uniform.push(uniform);
            }
            lists.length.push(drafts as i32);
            lists.draw.push(sample.draws.uniform(sample.position, Purpose::After));
        }
        lists
    }
}
