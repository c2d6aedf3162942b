//! One request as its client saw it.

/// Seconds on one clock, from the first request of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Timeline {
    /// When it was sent.
    pub(super) sent: f64,
    /// When each piece of text came.
    pub(super) pieces: Vec<f64>,
    /// When the answer was over.
    pub(super) end: f64,
    /// Tokens of the prompt, as the server counts them.
    pub(super) prompt_tokens: u64,
    /// Of these, tokens from a cache.
    pub(super) cached_tokens: u64,
    /// Tokens of the answer.
    pub(super) output_tokens: u64,
    /// Why there is no whole answer.
    pub(super) failure: Option<String>,
}

impl Timeline {
    /// Time to the first piece.
    pub(super) fn ttft(&self) -> Option<f64> {
        Some(self.pieces.first()? - self.sent)
    }

    /// Time to the last piece.
    pub(super) fn e2e(&self) -> Option<f64> {
        Some(self.pieces.last()? - self.sent)
    }

    /// Mean time of a token behind the first; none for an answer of one. A piece may have several tokens, so this is not
    /// the mean of the gaps.
    pub(super) fn tpot(&self) -> Option<f64> {
        let tokens = self.output_tokens.checked_sub(1).filter(|tokens| *tokens > 0)?;
        Some((self.e2e()? - self.ttft()?) / tokens as f64)
    }

    /// Moves it to so many seconds later.
    pub(super) fn shift(&mut self, seconds: f64) {
        let times = [&mut self.sent, &mut self.end].into_iter().chain(&mut self.pieces);
        times.for_each(|time| *time += seconds);
    }

    /// Times between neighbouring pieces.
    pub(super) fn gaps(&self) -> impl Iterator<Item = f64> {
        self.pieces.windows(2).map(|pair| pair[1] - pair[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_definitions() {
        let pieces = (0..5).map(|i| 1.5 + 0.25 * f64::from(i)).collect();
        let timeline =
            Timeline { sent: 1.0, pieces, end: 3.0, output_tokens: 9, ..Timeline::default() };
        assert_eq!(timeline.ttft(), Some(0.5));
        assert_eq!(timeline.e2e(), Some(1.5));
        assert_eq!(timeline.tpot(), Some(1.0 / 8.0));
        assert_eq!(timeline.gaps().collect::<Vec<_>>(), [0.25; 4]);
    }

    #[test]
    fn one_token_has_no_time_per_token_and_no_answer_has_none_at_all() {
        let one = Timeline { pieces: vec![0.5], output_tokens: 1, ..Timeline::default() };
        assert_eq!((one.ttft(), one.tpot(), one.gaps().count()), (Some(0.5), None, 0));
        let none = Timeline::default();
        assert_eq!((none.ttft(), none.e2e(), none.tpot()), (None, None, None));
    }
}
