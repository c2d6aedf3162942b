//! Failures that are known and written down.

use serde::Deserialize;

/// One expected failure.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Operator.
    pub op: String,
    /// Kernel row.
    pub row: String,
    /// Board, as the device names it.
    pub board: String,
    /// Where it is discussed.
    pub issue: String,
    /// What fails, in one line.
    pub reason: String,
    /// When it was first seen.
    pub since: String,
}

/// The list of expected failures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    #[serde(default)]
    xfail: Vec<Expected>,
}

impl List {
    /// Read the list.
    ///
    /// # Errors
    /// Where the text is not a list of expected failures.
    pub fn parse(text: &str) -> Result<List, String> {
        toml::from_str(text).map_err(|error| format!("xfail.toml: {error}"))
    }
    /// The entry for a row on a board.
    pub fn entry(&self, op: &str, row: &str, board: &str) -> Option<&Expected> {
        self.xfail.iter().find(|e| e.op == op && e.row == row && e.board == board)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_operator_row_and_board() {
        let text =
            "[[xfail]]\nop='a.b'\nrow='r'\nboard='h'\nissue='#1'\nreason='why'\nsince='2026'";
        let list = List::parse(text).expect("well formed");
        assert_eq!(list.entry("a.b", "r", "h").map(|e| e.issue.as_str()), Some("#1"));
        assert_eq!(list.entry("a.b", "r", "other"), None);
        assert!(List::parse("").expect("empty is fine").entry("a.b", "r", "h").is_none());
    }

    #[test]
    fn an_entry_needs_every_field() {
        assert!(List::parse("[[xfail]]\nop='a.b'").expect_err("fields missing").contains("row"));
    }

    #[test]
    fn the_committed_list_is_well_formed() {
        assert!(List::parse(include_str!("../../xfail.toml")).is_ok());
    }
}
