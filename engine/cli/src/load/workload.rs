//! What requests ask.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

/// Short words of everyday text, so that a word is about a token.
const WORDS: [&str; 24] = [
    "the", "sea", "and", "ship", "of", "a", "man", "was", "time", "in", "day", "that", "hand",
    "he", "old", "on", "white", "head", "with", "way", "as", "line", "long", "to",
];

/// What a prompt is made of, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// Of each prompt's own part.
    pub(super) own: usize,
    /// Of the part that prompts share, and how many such parts there are.
    pub(super) shared: usize,
    pub(super) prefixes: usize,
    /// Tokens of an answer at most.
    pub(super) output: u64,
    /// Questions of a session: each but the first goes on from the answer before.
    pub(super) turns: usize,
}

/// One session of a client: a conversation of one or several turns.
#[derive(Clone, Debug)]
pub(super) struct Session {
    messages: Vec<Value>,
    questions: Vec<String>,
    output: u64,
}

impl Session {
    /// Session number `index` of a run; the same of the same seed.
    pub(super) fn new(lengths: &Lengths, index: usize, seed: u64) -> Self {
        let prefix = index % lengths.prefixes.max(1);
        let shared = text(lengths.shared, seed ^ 0x5EED ^ (prefix as u64) << 32);
        let question = |turn: usize| {
            let own =
                text(lengths.own, seed.wrapping_add((index * lengths.turns + turn) as u64 + 1));
            // The number makes every question another.
            format!("{index}.{turn} {own}")
        };
        let messages = match shared.is_empty() {
            true => vec![],
            false => vec![json!({ "role": "system", "content": shared })],
        };
        let questions = (0..lengths.turns.max(1)).rev().map(question).collect();
        Self { messages, questions, output: lengths.output }
    }

    /// The body of the next request; `None` when the session is over.
    pub(super) fn next(&mut self, model: Option<&str>) -> Option<Value> {
        let question = self.questions.pop()?;
        self.messages.push(json!({ "role": "user", "content": question }));
        let mut body = json!({
            "messages": self.messages, "max_tokens": self.output, "temperature": 0, "stream": true,
            "stream_options": { "include_usage": true }, "reasoning_effort": "none",
        });
        if let Some(model) = model {
            body["model"] = model.into();
        }
        Some(body)
    }

    /// What the model said, which the next question goes on from.
    pub(super) fn answered(&mut self, text: &str) {
        self.messages.push(json!({ "role": "assistant", "content": text }));
    }
}

fn text(words: usize, seed: u64) -> String {
    let mut random = StdRng::seed_from_u64(seed);
    let words: Vec<_> = (0..words).map(|_| WORDS[random.random_range(0..WORDS.len())]).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: Lengths = Lengths { own: 5, shared: 40, prefixes: 2, output: 8, turns: 3 };

    #[test]
    fn sessions_share_their_prefix_and_nothing_else() {
        let first =
            |index: usize, seed: u64| Session::new(&LENGTHS, index, seed).next(None).unwrap();
        let (a, b, c) = (first(0, 1), first(1, 1), first(2, 1));
        assert_eq!(a["messages"][0], c["messages"][0]);
        assert_ne!(a["messages"][0], b["messages"][0]);
        assert_ne!(a["messages"][1], c["messages"][1]);
        assert_eq!(a, first(0, 1));
        assert_ne!(a["messages"], first(0, 2)["messages"]);
    }

    #[test]
    fn a_session_goes_on_from_what_was_answered() {
        let mut session = Session::new(&LENGTHS, 0, 1);
        let first = session.next(Some("whale")).unwrap();
        assert_eq!(
            (&first["model"], first["messages"].as_array().unwrap().len()),
            (&json!("whale"), 2)
        );
        session.answered("yes");
        let second = session.next(None).unwrap();
        let messages = second["messages"].as_array().unwrap();
        assert_eq!(messages[..2], first["messages"].as_array().unwrap()[..]);
        assert_eq!((messages.len(), &messages[2]["content"]), (4, &json!("yes")));
        assert!(session.next(None).is_some());
        assert!(session.next(None).is_none());
    }
}
