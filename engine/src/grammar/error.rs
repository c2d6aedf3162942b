//! What can go wrong with forms.

/// Why an answer cannot be held to a form.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GrammarError {
    /// The form is wrong, not supported or too large.
    #[error("{problem}; change or simplify it")]
    Form {
        /// What of it, in one line.
        problem: String,
    },
    /// Following an answer failed; what was generated before is in the form.
    #[error("following the answer's form failed: {problem}")]
    Following {
        /// How, in one line.
        problem: String,
    },
    /// The tokenizer cannot serve forms.
    #[error("the tokenizer has no {missing}, which forms need; leave forms out")]
    Tokenizer {
        /// What it lacks.
        missing: &'static str,
    },
}

/// What the library says, in one line.
pub(super) fn one_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
