//! What a step computes, and what comes of it.

use super::Engine;
use crate::error::{Error, Result};
use crate::exec::schedule::{Schedule, Turn};
use crate::exec::sequence::Sequence;
use crate::exec::{FinishReason, Forward, Sampled, StepShape};

impl<F: Forward> Engine<F> {
    /// Builds the lists and runs the model. The answers are in the order of the schedule.
    pub(super) fn compute(&mut self, schedule: &Schedule) -> Result<Vec<Sampled>> {
        let Self { running, geometry, options, lists, .. } = self;
        if self.repeats {
            let rows = running.len() as u64;
            self.work.add_step(geometry, rows, rows);
        } else {
            let chunk = |(at, turn): (usize, &Turn)| running[at].chunk(turn.settled, geometry);
            lists.fill(schedule.in_order().map(chunk));
            lists.want(schedule.outputs(options.block(geometry)));
            self.work.add_step(geometry, lists.rows.tokens(), lists.upper_tokens());
            if schedule.decodes() {
                let (rows, pages) = ((lists.sequences, lists.rows.tokens()), lists.table_pages);
                if let Some(shape) = StepShape::padded(options, geometry, rows, pages) {
                    lists.pad(shape);
                }
            }
        }
        let mut samples = Vec::with_capacity(running.len());
        if self.repeats {
            samples.extend(running.iter().map(Sequence::sample));
        } else {
            let ends = schedule.in_order().filter(|(_, turn)| turn.reaches_end());
            samples.extend(ends.map(|(at, _)| running[at].sample()));
        }
        let sampled = self.model.step(lists, &samples)?;
        if sampled.len() != samples.len() {
            let invariant = format!("{} answers for {}", sampled.len(), samples.len());
            return Err(Error::Internal { invariant });
        }
        Ok(sampled)
    }

    /// Keeps what stands, rolls the rest back, and lets finished requests go.
    pub(super) fn settle(&mut self, schedule: &mut Schedule, mut sampled: Vec<Sampled>) {
        // Answers to requests that verify drafts come first, in the order of the requests; then the
        // others.
        let verified = |turn: &&Turn| turn.verifies() && turn.reaches_end();
        let (mut next, mut next_verified) = (schedule.turns.iter().filter(verified).count(), 0);
        let mut finished = Vec::new();
        self.repeats = self.repeats || schedule.repeats() && self.lists.shape().is_some();
        let turns = schedule.turns.iter().zip(schedule.steps.drain(..));
        for (sequence, (turn, step)) in self.running.iter_mut().zip(turns) {
            let mut kept = turn.settled;
            let (mut is_number, mut is_over) = (false, false);
            if turn.reaches_end() {
                let place = if turn.verifies() { &mut next_verified } else { &mut next };
                let answer = std::mem::take(&mut sampled[*place]);
                *place += 1;
                let before = turn.verifies().then(|| sequence.usage());
                let (taken, finish) = sequence.accept(answer, &mut self.events);
                // The last token taken is not computed yet; those before it were drafts.
                kept += taken.saturating_sub(1);
                if let Some(before) = before {
                    self.work.add_drafts(before, sequence.usage());
                }
                self.work.nan_rows += u64::from(finish == Some(FinishReason::NotANumber));
                (is_number, is_over) = (finish != Some(FinishReason::NotANumber), finish.is_some());
                if let Some(reason) = finish {
                    self.events.push(sequence.finished(reason));
                    let generated = sequence.usage().generated_tokens;
                    self.waiting.charge(sequence.client(), generated);
                    if let Some(proposer) = &mut self.proposer {
                        proposer.forget(sequence.id);
                    }
                    finished.push(sequence.id);
                }
            }
            sequence.pages.commit(step, kept);
            sequence.keep_fork();
            if is_number && self.options.resume_points > 0 {
                // The first time, any of its pages may become another's that is equal.
                self.repeats &= sequence.has_shared();
                sequence.share(&mut self.cache, is_over);
            }
            sequence.release_pictures(sequence.pages.tokens(), &mut self.pictures);
        }
        if !finished.is_empty() {
            self.repeats = false;
            // Ids come in the order of the running requests.
            let mut finished = finished.into_iter().peekable();
            self.running.retain(|sequence| finished.next_if_eq(&sequence.id).is_none());
        }
    }

    pub(super) fn undo(&mut self, schedule: &mut Schedule) {
        self.repeats = false;
        for (sequence, step) in self.running.iter_mut().zip(schedule.steps.drain(..)) {
            sequence.pages.commit(step, 0);
        }
    }

    /// Drafts for every request whose next step decodes and has room for a draft.
    pub(super) fn draft(&mut self) -> Result<()> {
        let (limit, Some(proposer)) = (self.options.draft_tokens, &mut self.proposer) else {
            return Ok(());
        };
        let running = &mut self.running;
        let wanted = |at: &usize| running[*at].drafts_wanted(limit) > 0;
        let drafting: Vec<_> = (0..running.len()).filter(wanted).collect();
        if drafting.is_empty() {
            return Ok(());
        }
        let asked: Vec<_> = drafting.iter().map(|at| running[*at].drafting(limit)).collect();
        let drafts = proposer.propose(&mut self.model, &asked)?;
        self.work.drafts += 1;
        for (slot, (at, mut drafts)) in drafting.into_iter().zip(drafts).enumerate() {
            let sequence = &mut running[at];
            drafts.truncate(sequence.drafts_wanted(limit) as usize);
            self.repeats &= drafts.is_empty();
            sequence.drafts = drafts;
            sequence.draft_slot = slot as u64;
        }
        Ok(())
    }
}
