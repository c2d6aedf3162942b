//! Drafts that are looked up in what a request has already.

use crate::error::Result;
use crate::exec::{Drafting, Proposer, RequestId};
use std::collections::HashMap;

/// Places that are looked at for the longest match, the latest first.
const PLACES: usize = 16;
/// Tokens of a match beyond which a longer one is no better.
const MATCH_TOKENS: usize = 8;

/// Proposes what followed the last few tokens where the same tokens came before: text that is quoted,
/// code that is changed and answers of tools are repeated often.
#[derive(Debug, Default)]
pub(crate) struct Ngram {
    /// Of each request that goes on.
    texts: HashMap<RequestId, Text>,
}

/// Where each pair of neighbouring tokens is.
#[derive(Debug, Default)]
struct Text {
    /// One past the pair's last place.
    last: HashMap<(u32, u32), u32>,
    /// For each place of a pair, one past the place before it; 0 for none.
    before: Vec<u32>,
}

impl Text {
    /// Takes note of the pairs of `tokens`, of which it has seen the front.
    fn read(&mut self, tokens: &[u32]) {
        for at in self.before.len()..tokens.len().saturating_sub(1) {
            let place = u32::try_from(at + 1).expect("contexts are 31-bit");
            let before = self.last.insert((tokens[at], tokens[at + 1]), place);
            self.before.push(before.unwrap_or(0));
        }
    }

    /// What followed the longest match of the end of `tokens`, the latest of equally long ones.
    fn following<'a>(&self, tokens: &'a [u32]) -> &'a [u32] {
        let Some(end) = tokens.len().checked_sub(2) else { return &[] };
        let mut next = self.before.get(end).copied().unwrap_or(0);
        let (mut best, mut longest) = (None, 0);
        for _ in 0..PLACES {
            let Some(place) = (next as usize).checked_sub(1) else { break };
            let back = tokens[..place].iter().rev().zip(tokens[..end].iter().rev());
            let matched = back.take(MATCH_TOKENS).take_while(|(a, b)| a == b).count();
            if best.is_none() || matched > longest {
                (best, longest) = (Some(place + 2), matched);
            }
            next = self.before[place];
        }
        best.map_or(&[], |following| &tokens[following..])
    }
}

impl<F> Proposer<F> for Ngram {
    fn propose(&mut self, _model: &mut F, drafting: &[Drafting<'_>]) -> Result<Vec<Vec<u32>>> {
        let mut look_up = |of: &Drafting<'_>| {
            let text = self.texts.entry(of.request).or_default();
            text.read(of.tokens);
            let following = text.following(of.tokens);
            following[..following.len().min(of.wanted as usize)].to_vec()
        };
        Ok(drafting.iter().map(&mut look_up).collect())
    }

    fn forget(&mut self, request: RequestId) {
        self.texts.remove(&request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn following(tokens: &[u32]) -> &[u32] {
        let mut text = Text::default();
        // Read in two parts, as an answer grows.
        text.read(&tokens[..tokens.len() / 2]);
        text.read(tokens);
        text.following(tokens)
    }

    #[test]
    fn the_longest_match_wins_and_of_equals_the_latest() {
        assert_eq!(following(&[1, 2, 3, 4, 1, 2]), [3, 4, 1, 2]);
        assert_eq!(following(&[1, 2, 7, 1, 2, 8, 1, 2]), [8, 1, 2]);
        assert_eq!(following(&[5, 1, 2, 7, 6, 1, 2, 8, 5, 1, 2]), [7, 6, 1, 2, 8, 5, 1, 2]);
        assert_eq!(following(&[9, 9, 9, 9]), [9]);
        for nothing in [&[][..], &[1], &[1, 2], &[1, 2, 3], &[1, 2, 2, 1]] {
            assert!(following(nothing).is_empty(), "{nothing:?}");
        }
    }

    proptest! {
        /// What is proposed did follow the last two tokens somewhere, and that is found wherever
        /// there is one.
        #[test]
        fn it_did_follow(tokens in proptest::collection::vec(0u32..4, 0..60)) {
            let found = following(&tokens);
            let pair = |at: usize| tokens.get(at..at + 2);
            let end = tokens.len().saturating_sub(2);
            let before = (0..end).any(|at| tokens.len() > 2 && pair(at) == pair(end));
            prop_assert_eq!(before, !found.is_empty());
            if before {
                let at = tokens.len() - found.len() - 2;
                prop_assert_eq!(pair(at), pair(end));
            }
        }
    }
}
