//! Reasoning effort: a number in the prompt, not a token budget.

use super::error::ConversationError;

/// How thoroughly to reason, 1 to 100.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Effort(u8);

/// What a request asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EffortRequest {
    /// No reasoning.
    Off,
    /// Reasoning of this effort.
    On(Effort),
}

impl Effort {
    /// `minimal` and `low`.
    pub const LOW: Effort = Effort(50);
    /// `medium`, `high` and `xhigh`; also the default.
    pub const HIGH: Effort = Effort(75);
    /// `ultra` and `max`.
    pub const MAX: Effort = Effort(100);

    /// An effort by number; the hosted model knows only the three named ones.
    ///
    /// # Errors
    /// [`ConversationError::UnknownEffort`] outside 1 to 100.
    pub fn from_number(number: u64) -> Result<Self, ConversationError> {
        match u8::try_from(number) {
            Ok(value @ 1..=100) => Ok(Self(value)),
            _ => Err(ConversationError::UnknownEffort { value: number.to_string() }),
        }
    }

    /// The number that the prompt shows.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl EffortRequest {
    /// An effort by the word that the hosted model's API takes.
    ///
    /// # Errors
    /// [`ConversationError::UnknownEffort`] for any other word.
    pub fn from_word(word: &str) -> Result<Self, ConversationError> {
        Ok(match word {
            "none" => Self::Off,
            "minimal" | "low" => Self::On(Effort::LOW),
            "medium" | "high" | "xhigh" => Self::On(Effort::HIGH),
            "ultra" | "max" => Self::On(Effort::MAX),
            _ => return Err(ConversationError::UnknownEffort { value: word.to_owned() }),
        })
    }

    /// Whether to think and how hard, from the two fields of a request. An explicit `thinking`
    /// wins over the effort; without either the model thinks with effort high.
    pub fn resolve(thinking: Option<bool>, effort: Option<EffortRequest>) -> (bool, Effort) {
        match (thinking, effort) {
            (Some(on), Some(Self::On(effort))) => (on, effort),
            (None, Some(Self::On(effort))) => (true, effort),
            (None, Some(Self::Off)) => (false, Effort::HIGH),
            (thinking, _) => (thinking.unwrap_or(true), Effort::HIGH),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, EffortRequest};

    #[test]
    fn words_have_the_released_numbers() {
        let number = |word| match EffortRequest::from_word(word).unwrap() {
            EffortRequest::Off => 0,
            EffortRequest::On(effort) => effort.number(),
        };
        let words = ["none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"];
        assert_eq!(words.map(number), [0, 50, 50, 75, 75, 75, 100, 100]);
        for word in ["", "High", "75", "extreme"] {
            assert!(EffortRequest::from_word(word).is_err());
        }
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!(Effort::from_number(1).unwrap().number(), 1);
        assert_eq!(Effort::from_number(100).unwrap(), Effort::MAX);
        for number in [0, 101, 256, u64::MAX] {
            assert!(Effort::from_number(number).is_err());
        }
    }

    #[test]
    fn thinking_wins_over_effort() {
        let max = Some(EffortRequest::On(Effort::MAX));
        let off = Some(EffortRequest::Off);
        assert_eq!(EffortRequest::resolve(None, None), (true, Effort::HIGH));
        assert_eq!(EffortRequest::resolve(None, max), (true, Effort::MAX));
        assert_eq!(EffortRequest::resolve(None, off), (false, Effort::HIGH));
        assert_eq!(EffortRequest::resolve(Some(true), off), (true, Effort::HIGH));
        assert!(!EffortRequest::resolve(Some(false), max).0);
        assert!(!EffortRequest::resolve(Some(false), None).0);
    }
}
