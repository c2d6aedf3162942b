//! An engine under load, without a server: prompts that are made up, answers as long as they are asked for.

use std::collections::HashMap;
use std::time::Instant;

use tandem_engine::Result;
use tandem_engine::exec::{Engine, FinishReason, Forward, Request, RequestId, What};

use super::timeline::Timeline;

/// Requests of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) requests: usize,
    /// How many are under way at once.
    pub(super) at_once: usize,
    /// Tokens of each prompt, and how many of them all share at their beginning.
    pub(super) prompt_tokens: u64,
    pub(super) shared_tokens: u64,
    /// Tokens of each answer.
    pub(super) output_tokens: u64,
    /// Ids of the vocabulary.
    pub(super) vocabulary: u64,
    pub(super) seed: u64,
}

impl Work {
    /// The prompt of a request. All but what is shared is another for every request and seed.
    fn prompt(&self, request: usize) -> Vec<u32> {
        // A walk with a prime stride, so that no prompt repeats itself.
        let id = |from: u64, at: u64| {
            (from.wrapping_add(at.wrapping_mul(7919)) % self.vocabulary) as u32
        };
        let own = self
            .seed
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(104_729 * (request as u64 + 1));
        let at = |at: u64| id(if at < self.shared_tokens { 0 } else { own }, at);
        (0..self.prompt_tokens).map(at).collect()
    }

    /// Greedy and past every end, so that each run does the same work.
    fn request(&self, request: usize, drafts: bool) -> Request {
        let max_tokens = Some(self.output_tokens);
        Request { prompt: self.prompt(request), max_tokens, drafts, ..Request::default() }
    }

    /// Does it; what each request saw, in the order of their ends.
    ///
    /// # Errors
    /// Those of the engine. It must be idle before.
    pub(super) fn run<F: Forward>(&self, engine: &mut Engine<F>) -> Result<Vec<Timeline>> {
        let drafts = engine.options().draft_tokens > 0;
        let clock = Instant::now();
        let now = || clock.elapsed().as_secs_f64();
        let mut open: HashMap<RequestId, Timeline> = HashMap::new();
        let mut done = vec![];
        let mut next = 0;
        while done.len() < self.requests {
            while next < self.requests && open.len() < self.at_once {
                let sent = now();
                let id = engine.add(self.request(next, drafts))?;
                open.insert(id, Timeline { sent, ..Timeline::default() });
                next += 1;
            }
            let events = engine.step()?;
            let came = now();
            for event in events {
                let Some(timeline) = open.get_mut(&event.request) else { continue };
                match event.what {
                    What::Started { .. } => {}
                    // Tokens of one step come together.
                    What::Token { .. } if timeline.pieces.last() == Some(&came) => {}
                    What::Token { .. } => timeline.pieces.push(came),
                    What::Finished { reason, usage } => {
                        timeline.end = came;
                        timeline.prompt_tokens = usage.prompt_tokens;
                        timeline.cached_tokens = usage.cached_tokens;
                        timeline.output_tokens = usage.generated_tokens;
                        if reason != FinishReason::Length {
                            timeline.failure = Some(format!("{reason:?}"));
                        }
                        done.extend(open.remove(&event.request));
                    }
                }
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_share_their_beginning_and_nothing_else() {
        let work = Work {
            requests: 2,
            at_once: 1,
            prompt_tokens: 8,
            shared_tokens: 3,
            output_tokens: 1,
            vocabulary: 2048,
            seed: 1,
        };
        let (one, other) = (work.prompt(0), work.prompt(1));
        assert_eq!((one.len(), &one[..3]), (8, &other[..3]));
        assert!(one[3..].iter().zip(&other[3..]).all(|(one, other)| one != other));
        assert!(one.iter().all(|id| *id < 2048));
        assert_eq!(one, work.prompt(0));
        assert_ne!(one, Work { seed: 2, ..work }.prompt(0));
    }
}
