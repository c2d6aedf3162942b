//! A reply on the terminal as it comes: reasoning apart from the answer.

use std::io::{self, IsTerminal};

use tandem_engine::Result;
use tandem_engine::text::Event;

use crate::console;

/// Prints the pieces of one reply.
pub(crate) struct Transcript {
    /// Before and after the reasoning.
    marks: [&'static str; 2],
    reasoning: bool,
}

impl Transcript {
    /// Of a reply that begins now: faint reasoning on a terminal, tags elsewhere.
    pub(crate) fn new() -> Self {
        let faint = io::stdout().is_terminal();
        let marks =
            if faint { ["\u{1b}[2m", "\u{1b}[0m\n\n"] } else { ["<think>\n", "\n</think>\n"] };
        Self { marks, reasoning: false }
    }

    /// Prints a piece.
    ///
    /// # Errors
    /// When standard output cannot take it.
    pub(crate) fn show(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Reasoning(text) => {
                if !self.reasoning {
                    console::print(self.marks[0])?;
                }
                self.reasoning = true;
                console::print(text)
            }
            Event::Content(text) => {
                self.close()?;
                console::print(text)
            }
            Event::Finish(_) => {
                self.close()?;
                console::print("\n")
            }
            // No tools are declared, so nothing is called.
            Event::CallStart { .. } | Event::CallArguments { .. } | Event::CallEnd { .. } => Ok(()),
        }
    }

    fn close(&mut self) -> Result<()> {
        if std::mem::take(&mut self.reasoning) { console::print(self.marks[1]) } else { Ok(()) }
    }
}
