//! Log-probabilities, for steps in which a request asked for them.

use super::{MAX_LOG_PROBS, read};
use crate::error::Result;
use crate::exec::{LogProbs as Row, Staging};
use tandem_hal::{Arena, Device, Enc, Extents, Lane, LogProbs, LogProbsIo, Plan, Sym, View, Want};

pub(crate) struct LogProber {
    plan: Plan<LogProbs>,
    staging: Staging,
    /// `[outputs]` f32.
    chosen: View,
    /// `[outputs, MAX_LOG_PROBS]` i32.
    top_id: View,
    /// `[outputs, MAX_LOG_PROBS]` f32.
    top: View,
}

impl LogProber {
    pub(crate) fn new(device: &dyn Device, vocab: u64, outputs: u64) -> Result<Self> {
        let top = MAX_LOG_PROBS;
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, outputs)]));
        let shapes: [(Enc, &[u64]); 3] =
            [(Enc::F32, &[outputs]), (Enc::I32, &[outputs, top]), (Enc::F32, &[outputs, top])];
        let bytes = shapes.iter().map(|(enc, shape)| View::reserved_bytes(*enc, shape)).sum();
        let mut arena = Arena::new(device, bytes, "log-probabilities")?;
        let [chosen, top_id, best] = shapes.map(|(enc, shape)| arena.view(enc, shape));
        Ok(Self {
            plan: device.plan(LogProbs { vocab, top }, &want)?,
            staging: Staging::new(device, "log-probability lists", [outputs])?,
            chosen: chosen?,
            top_id: top_id?,
            top: best?,
        })
    }

    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.plan.workspace_bytes()
    }

    /// Of `tokens`, one for each row of `logits`, -1 for none.
    pub(crate) fn read(
        &mut self,
        logits: &View,
        tokens: &[i32],
        lane: Lane<'_>,
    ) -> Result<Vec<Row>> {
        let rows = 0..tokens.len() as u64;
        self.staging.clear();
        let token = self.staging.i32(tokens, &[rows.end])?;
        self.staging.flush(lane.stream)?;
        let chosen = self.chosen.rows(rows.clone())?;
        let (top_id, top) = (self.top_id.rows(rows.clone())?, self.top.rows(rows)?);
        let io = LogProbsIo { logits, token: &token, chosen: &chosen, top_id: &top_id, top: &top };
        lane.run(&self.plan, io)?;
        let chosen = read::f32(&chosen, lane.stream)?;
        let (ids, best) = (read::i32(&top_id, lane.stream)?, read::f32(&top, lane.stream)?);
        let columns = MAX_LOG_PROBS as usize;
        let pairs = ids.chunks(columns).zip(best.chunks(columns));
        let row = |(chosen, (ids, best)): (f32, (&[i32], &[f32]))| Row {
            chosen,
            top: ids
                .iter()
                .zip(best)
                .filter_map(|(id, best)| Some((u32::try_from(*id).ok()?, *best)))
                .collect(),
        };
        Ok(chosen.into_iter().zip(pairs).map(row).collect())
    }
}

impl Row {
    /// With the first `top` alternatives.
    pub(crate) fn cut(&self, top: u64) -> Row {
        let top = self.top.iter().take(top as usize).copied().collect();
        Row { chosen: self.chosen, top }
    }
}
