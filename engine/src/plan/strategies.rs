//! The settings each known board starts with, as text.

use std::fmt;

use super::board::{Board, Placement};
use super::table::{Table, gib3, grouped};

/// The table of boards; it prints as aligned text.
#[derive(Debug, Clone, Copy)]
pub struct Strategies;

impl fmt::Display for Strategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "boards, planned strategies",
            "GiB",
            "tensor parallel",
            "Engram tables",
            "sequences",
            "tokens a step",
            "memory used",
        ]);
        for board in Board::all() {
            table.row(vec![
                format!("{} ({})", board.name, board.architecture.name),
                gib3(board.memory_bytes),
                board.tensor_parallel.to_string(),
                match board.engram {
                    Placement::Device => "device".into(),
                    Placement::Host => "host".into(),
                },
                grouped(board.sequences),
                grouped(board.step_tokens),
                board.utilisation.to_string(),
            ]);
        }
        writeln!(f, "{table}")?;
        for board in Board::all() {
            writeln!(f, "  {}: {}", board.name, board.notes)?;
        }
        Ok(())
    }
}
