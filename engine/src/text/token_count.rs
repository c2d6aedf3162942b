//! How many tokens a prompt has.

use std::fmt;

/// A number of tokens, as far as it is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TokenCount {
    /// They were counted.
    Exactly(u64),
    /// What the text's length alone tells.
    AtLeast(u64),
}

impl TokenCount {
    /// The fewest that it may be.
    pub fn least(self) -> u64 {
        match self {
            Self::Exactly(tokens) | Self::AtLeast(tokens) => tokens,
        }
    }
}

impl fmt::Display for TokenCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(tokens) => write!(f, "{tokens} tokens"),
            Self::AtLeast(tokens) => write!(f, "at least {tokens} tokens"),
        }
    }
}
