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
    /// others, `prompt_rows` at most while any decodes. Of several prompts the oldest has at least
    /// half of the rows, so every prompt comes to its end; the shortest of the others are next, so
    /// that a short one does not wait for a long one. `reach` is asked how many of a request's next
    /// rows can be computed.
    ///
    /// # Errors
    /// Those of `reach`.
    pub(super) fn shares(
        running: &mut [Sequence],
        options: &EngineOptions,
        prompt_rows: u64,
        mut reach: impl FnMut(&mut Sequence, u64) -> Result<u64>,
    ) -> Result<Vec<u64>> {
        let mut shares = vec![0; running.len()];
        let (mut taken, mut prompts) = (0, Vec::new());
        for (at, sequence) in running.iter_mut().enumerate() {
            if sequence.due_tokens() == 1 {
                shares[at] = reach(sequence, 1)?;
                taken += 1 + sequence.drafts.len() as u64;
            } else {
                prompts.push(at);
            }
        }
        let bound = if taken > 0 { prompt_rows } else { u64::MAX };
        let mut left = options.step_tokens.saturating_sub(taken).min(bound);
        let oldest = prompts.first().copied();
        prompts.sort_by_key(|at| running[*at].due_tokens());
        let halved = prompts.first().copied() != oldest;
        if halved {
            // First for its half, and again in its place for what is left.
            prompts.splice(..0, oldest);
        }
        for (place, at) in prompts.iter().copied().enumerate() {
            let room = if halved && place == 0 { left.div_ceil(2) } else { left };
            let wish = running[at].step_tokens().min(options.chunk_tokens).min(shares[at] + room);
            let share = reach(&mut running[at], wish)?;
            left -= share - shares[at];
            shares[at] = share;
        }
        Ok(shares)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.iter().all(|turn| turn.rows == 0)
    }

    /// Requests that decode, and rows of the prompts of others.
    pub(super) fn rows(&self, running: &[Sequence]) -> (u64, u64) {
        let turns = self.turns.iter().zip(running);
        turns.fold((0, 0), |(decoding, prompt), (turn, sequence)| match sequence.due_tokens() {
            1 => (decoding + u64::from(turn.rows > 0), prompt),
            _ => (decoding, prompt + turn.rows),
        })
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
