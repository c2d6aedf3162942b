//! Who runs how many rows in a step.

use super::EngineOptions;
use super::row_lists::number;
use super::sequence::Sequence;
use crate::error::Result;
use crate::kv::Checkpoint;

/// The part of one running request in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Settled tokens that are computed.
    pub(super) settled: u64,
    /// Rows: those and the drafts after them.
    pub(super) rows: u64,
    /// Settled tokens that were not computed before the step.
    pub(super) due: u64,
}

impl Turn {
    /// Drafts that it verifies.
    pub(super) fn drafts(&self) -> u64 {
        self.rows - self.settled
    }

    pub(super) fn verifies(&self) -> bool {
        self.drafts() > 0
    }

    /// Whether it computes the last settled token, so that a next one is sampled.
    pub(super) fn reaches_end(&self) -> bool {
        self.settled > 0 && self.settled == self.due
    }
}

/// The turns of a step, one for each running request in order; some have no rows. It holds what
/// building a step asks about each request, so that those passes do not visit the requests.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) turns: Vec<Turn>,
    /// The open step of each.
    pub(super) steps: Vec<Checkpoint>,
    order: Vec<usize>,
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

    /// Begins anew, keeping the room.
    pub(super) fn clear(&mut self) {
        self.turns.clear();
        self.steps.clear();
        self.order.clear();
    }

    /// Ends the sharing out: sorts the requests with rows, those that verify drafts first, so that
    /// their outputs lie side by side.
    pub(super) fn close(&mut self) {
        let Self { turns, order, .. } = self;
        for verifies in [true, false] {
            let some = |(_, turn): &(usize, &Turn)| turn.rows > 0 && turn.verifies() == verifies;
            order.extend(turns.iter().enumerate().filter(some).map(|(at, _)| at));
        }
    }

    /// The requests with rows, in the order of their rows, and their turns.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, &Turn)> + Clone {
        self.order.iter().map(|&at| (at, &self.turns[at]))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Requests that decode, and rows of the prompts of others.
    pub(super) fn rows(&self) -> (u64, u64) {
        self.in_order().fold((0, 0), |(decoding, prompt), (_, turn)| match turn.due {
            1 => (decoding + 1, prompt),
            _ => (decoding, prompt + turn.rows),
        })
    }

    /// The rows whose logits are wanted. A request that verifies drafts has `block + 1` outputs,
    /// however many drafts it has.
    pub(super) fn outputs(&self, block: u64) -> Vec<i32> {
        let (mut outputs, mut row) = (Vec::with_capacity(self.order.len()), 0);
        for (_, turn) in self.in_order() {
            let end = row + turn.rows;
            if turn.reaches_end() {
                outputs.extend((end - 1 - turn.drafts()..end).map(number));
                if turn.verifies() {
                    outputs.extend(std::iter::repeat_n(-1, (block - turn.drafts()) as usize));
                }
            }
            row = end;
        }
        outputs
    }

    /// Whether any request verifies drafts.
    pub(super) fn verifies(&self) -> bool {
        self.in_order().next().is_some_and(|(_, turn)| turn.verifies())
    }

    /// Whether every request computes its next token and nothing else, so that a step of the same
    /// requests can have the same turns.
    pub(super) fn repeats(&self) -> bool {
        let all = !self.is_empty() && self.order.len() == self.turns.len();
        all && self.decodes() && !self.verifies()
    }

    /// Whether every request with rows computes its next token, so that none has prompt rows.
    pub(super) fn decodes(&self) -> bool {
        self.in_order().all(|(_, turn)| turn.settled == 1 && turn.reaches_end())
    }
}
