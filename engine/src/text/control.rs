//! The control tokens of the prompt format, by role and by spelling.

/// A token with a meaning of its own in prompts or replies.
///
/// Only what the encoder writes or the reply parser recognises is listed; every other entry of the
/// added vocabulary is inert.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ControlToken {
    /// Begins every prompt.
    Bos,
    /// Ends every assistant turn; the only stop token.
    Eos,
    /// Opens a system turn.
    System,
    /// Opens a user turn.
    User,
    /// Opens an assistant turn.
    Assistant,
    /// Opens the reasoning.
    ThinkOpen,
    /// Closes the reasoning.
    ThinkClose,
    /// The marker inside every tag of the tool-call markup; its angle brackets are ordinary text.
    Dsml,
    /// Stands for one picture.
    Image,
    /// Opens a reminder turn.
    LatestReminder,
    /// Task: decide on an action.
    Action,
    /// Task: write a search query.
    Query,
    /// Task: judge authority.
    Authority,
    /// Task: name the domain.
    Domain,
    /// Task: write a title.
    Title,
    /// Task: decide which address to read.
    ReadUrl,
}

impl ControlToken {
    /// Every control token.
    pub const ALL: [ControlToken; 16] = [
        ControlToken::Bos,
        ControlToken::Eos,
        ControlToken::System,
        ControlToken::User,
        ControlToken::Assistant,
        ControlToken::ThinkOpen,
        ControlToken::ThinkClose,
        ControlToken::Dsml,
        ControlToken::Image,
        ControlToken::LatestReminder,
        ControlToken::Action,
        ControlToken::Query,
        ControlToken::Authority,
        ControlToken::Domain,
        ControlToken::Title,
        ControlToken::ReadUrl,
    ];

    /// How the token is spelled in a tokenizer.json (bars are U+FF5C, blocks U+2581).
    pub const fn spelling(self) -> &'static str {
        match self {
            ControlToken::Bos => "<｜begin▁of▁sentence｜>",
            ControlToken::Eos => "<｜end▁of▁sentence｜>",
            ControlToken::System => "<｜System｜>",
            ControlToken::User => "<｜User｜>",
            ControlToken::Assistant => "<｜Assistant｜>",
            ControlToken::ThinkOpen => "<think>",
            ControlToken::ThinkClose => "</think>",
            ControlToken::Dsml => "｜DSML｜",
            ControlToken::Image => "<｜deepseek_image｜>",
            ControlToken::LatestReminder => "<｜latest_reminder｜>",
            ControlToken::Action => "<｜action｜>",
            ControlToken::Query => "<｜query｜>",
            ControlToken::Authority => "<｜authority｜>",
            ControlToken::Domain => "<｜domain｜>",
            ControlToken::Title => "<｜title｜>",
            ControlToken::ReadUrl => "<｜read_url｜>",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ControlToken;
    use std::collections::HashSet;

    #[test]
    fn spellings_are_distinct() {
        let spellings: HashSet<_> =
            ControlToken::ALL.iter().map(|token| token.spelling()).collect();
        assert_eq!(spellings.len(), ControlToken::ALL.len());
    }
}
