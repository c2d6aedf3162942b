//! Who runs how many rows in a step.

use super::EngineOptions;
use super::row_lists::number;
use super::sequence::Sequence;
use crate::error::Result;
use crate::kv::Checkpoint;

/// The part of one running request in a step.
#[derive(Debug)]
pub(super) struct Turn {
    /// Settled tokens that are computed.
    pub(super) settled: u64,
    /// Rows: those and the drafts after them.
    pub(super) rows: u64,
    /// Its open step.
    pub(super) step: Checkpoint,
}

/// The turns of a step, one for each running request in order; some have no rows.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) turns: Vec<Turn>,
}

impl Schedule {
    /// Settled tokens each request computes: one for all that decode, then prompt tokens of the
    /// others, oldest first, as far as the rows of a step go. `reach` is asked how many of a
    /// request's next rows can be computed.
    ///
    /// # Errors
    /// Those of `reach`.
    pub(super) fn shares(
        running: &mut [Sequence],
        options: &EngineOptions,
        mut reach: impl FnMut(&mut Sequence, u64) -> Result<u64>,
    ) -> Result<Vec<u64>> {
        let decodes = |sequence: &Sequence| sequence.due_tokens() == 1;
        let decode_rows = |sequence: &Sequence| 1 + sequence.drafts.len() as u64;
        let taken: u64 = running.iter().filter(|s| decodes(s)).map(decode_rows).sum();
        let mut left = options.step_tokens.saturating_sub(taken);
        let share = |sequence: &mut Sequence| {
            if decodes(sequence) {
                return reach(sequence, 1);
            }
            let share = sequence.due_tokens().min(options.chunk_tokens).min(left);
            let share = reach(sequence, share)?;
            left -= share;
            Ok(share)
        };
        running.iter_mut().map(share).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.iter().all(|turn| turn.rows == 0)
    }

    /// Requests with rows, those that verify drafts first: their outputs lie side by side.
    pub(super) fn order(&self, running: &[Sequence]) -> Vec<usize> {
        let some = || (0..self.turns.len()).filter(|at| self.turns[*at].rows > 0);
        let verifies = |at: &usize| !running[*at].drafts.is_empty();
        some().filter(verifies).chain(some().filter(|at| !verifies(at))).collect()
    }

    /// Whether a request's turn computes its last settled token, so that a next one is sampled.
    pub(super) fn reaches_end(&self, at: usize, running: &[Sequence]) -> bool {
        let settled = self.turns[at].settled;
        settled > 0 && settled == running[at].due_tokens()
    }

    /// The rows whose logits are wanted. A request that verifies drafts has `block + 1` outputs,
    /// however many drafts it has.
    pub(super) fn outputs(&self, order: &[usize], running: &[Sequence], block: u64) -> Vec<i32> {
        let (mut outputs, mut row) = (Vec::new(), 0);
        for at in order {
            let end = row + self.turns[*at].rows;
            let drafts = running[*at].drafts.len() as u64;
            if self.reaches_end(*at, running) {
                outputs.extend((end - 1 - drafts..end).map(number));
                if drafts > 0 {
                    outputs.extend(std::iter::repeat_n(-1, (block - drafts) as usize));
                }
            }
            row = end;
        }
        outputs
    }

    /// Whether every request with rows computes its next token, so that none has prompt rows.
    pub(super) fn decodes(&self, running: &[Sequence]) -> bool {
        let decodes = |at: usize| self.turns[at].settled == 1 && self.reaches_end(at, running);
        (0..self.turns.len()).all(|at| self.turns[at].rows == 0 || decodes(at))
    }
}
