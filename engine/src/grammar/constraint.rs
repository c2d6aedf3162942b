//! One reply and the form that it is held to.

use std::fmt;
use std::iter::repeat_n;
use std::sync::Arc;

use llguidance::Matcher;

use super::error::{GrammarError, one_line};
use super::grammars::Reasoning;

/// Follows a reply token by token and says which may come next.
pub struct Constraint {
    matcher: Matcher,
    /// What may come until the answer begins; `None` from there on.
    reasoning: Option<Arc<Reasoning>>,
    words: usize,
}

impl Constraint {
    pub(super) fn new(matcher: Matcher, reasoning: Option<Arc<Reasoning>>, words: usize) -> Self {
        Self { matcher, reasoning, words }
    }

    /// Appends the words of one mask for the next token, and of one for the token after each of
    /// `drafts`: bit `id` is set where that token may come. After a draft that may not come, which
    /// never stands, anything may.
    ///
    /// # Errors
    /// [`GrammarError::Following`]; the reply cannot go on.
    pub fn masks(&mut self, drafts: &[u32], masks: &mut Vec<u32>) -> Result<(), GrammarError> {
        let reasoning = self.reasoning.clone();
        let (mut followed, end) = (0, masks.len() + (drafts.len() + 1) * self.words);
        for place in 0..=drafts.len() {
            let start = masks.len();
            self.mask(masks)?;
            let Some(draft) = drafts.get(place) else { break };
            if !allows(&masks[start..], *draft) {
                break;
            }
            match &self.reasoning {
                Some(reasoning) if reasoning.close == *draft => self.reasoning = None,
                Some(_) => {}
                // The end of the answer: nothing follows.
                None if self.matcher.is_stopped() => break,
                None => {
                    self.matcher.consume_token(*draft).map_err(following)?;
                    followed += 1;
                }
            }
        }
        masks.extend(repeat_n(u32::MAX, end - masks.len()));
        self.reasoning = reasoning;
        self.matcher.rollback(followed).map_err(following)
    }

    /// Goes on behind a token of the reply.
    ///
    /// # Errors
    /// [`GrammarError::Following`]; the reply cannot go on.
    pub fn accept(&mut self, token: u32) -> Result<(), GrammarError> {
        match &self.reasoning {
            Some(reasoning) if reasoning.close == token => self.reasoning = None,
            Some(_) => {}
            None => self.matcher.consume_token(token).map_err(following)?,
        }
        Ok(())
    }

    fn mask(&mut self, masks: &mut Vec<u32>) -> Result<(), GrammarError> {
        if let Some(reasoning) = &self.reasoning {
            masks.extend(&reasoning.allowed);
            return Ok(());
        }
        let allowed = self.matcher.compute_mask_or_eos().map_err(following)?;
        if allowed.is_zero() {
            return Err(following("no token may come next"));
        }
        let end = masks.len() + self.words;
        masks.extend(allowed.as_slice().iter().take(self.words));
        masks.resize(end, 0);
        Ok(())
    }
}

fn allows(mask: &[u32], token: u32) -> bool {
    mask.get((token / 32) as usize).is_some_and(|word| word >> (token % 32) & 1 == 1)
}

fn following(error: impl fmt::Display) -> GrammarError {
    GrammarError::Following { problem: one_line(&error) }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = self.reasoning.is_some();
        f.debug_struct("Constraint").field("reasons", &reasons).finish_non_exhaustive()
    }
}
