//! The indexer's score buffer: rows of queries by visible entries, in pieces that fit a budget.

use std::ops::Range;

use crate::error::{Error, Result};

/// How the rows of a step are cut so that their f32 scores fit a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScorePieces {
    /// Rows of the step.
    pub rows: u64,
    /// Rows of every piece but the last, which may be shorter.
    pub rows_per_piece: u64,
    /// Pieces.
    pub pieces: u64,
    /// Bytes all scores would take at once.
    pub unsplit_bytes: u64,
    /// Bytes of the largest piece.
    pub piece_bytes: u64,
}

/// Bytes of one score.
const SCORE_BYTES: u64 = 4;

impl ScorePieces {
    /// The fewest pieces that fit, as even as whole rows allow.
    ///
    /// # Errors
    /// A budget below the scores of one row, or sizes beyond 64 bits.
    pub fn new(rows: u64, visible_entries: u64, budget_bytes: u64) -> Result<Self> {
        let refuse = |problem| Error::argument("score budget", problem);
        let row_bytes = visible_entries.checked_mul(SCORE_BYTES);
        let unsplit = row_bytes.and_then(|row_bytes| row_bytes.checked_mul(rows));
        let (Some(row_bytes), Some(unsplit_bytes)) = (row_bytes, unsplit) else {
            let problem = format!("{rows} rows of {visible_entries} scores exceed 64 bits");
            return Err(refuse(problem));
        };
        if unsplit_bytes == 0 {
            return Ok(Self {
                rows,
                rows_per_piece: rows,
                pieces: 0,
                unsplit_bytes,
                piece_bytes: 0,
            });
        }
        let most = budget_bytes / row_bytes;
        if most == 0 {
            let problem = format!(
                "{budget_bytes} bytes do not hold one row of {visible_entries} scores; give at \
                 least {row_bytes}"
            );
            return Err(refuse(problem));
        }
        let pieces = rows.div_ceil(most);
        let rows_per_piece = rows.div_ceil(pieces);
        Ok(Self {
            rows,
            rows_per_piece,
            pieces: rows.div_ceil(rows_per_piece),
            unsplit_bytes,
            piece_bytes: rows_per_piece * row_bytes,
        })
    }

    /// The rows of each piece, in order.
    pub fn ranges(self) -> impl Iterator<Item = Range<u64>> {
        (0..self.pieces).map(move |piece| {
            let begin = piece * self.rows_per_piece;
            begin..(begin + self.rows_per_piece).min(self.rows)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c040_score_buffer_within_a_budget() {
        let pieces = ScorePieces::new(4096, 1_048_576, 2 << 30).unwrap();
        assert_eq!(pieces.unsplit_bytes, 17_179_869_184);
        assert_eq!((pieces.pieces, pieces.rows_per_piece), (8, 512));
        assert!(pieces.piece_bytes <= 2 << 30);
        for (budget, expected) in [(16 * 64 * 4, 1), (8 * 64 * 4, 2), (64 * 4, 16)] {
            let pieces = ScorePieces::new(16, 64, budget).unwrap();
            assert_eq!(pieces.pieces, expected);
            // Pieces cover every row once, in order, so each row is scored and selected alone.
            let rows: Vec<_> = pieces.ranges().flatten().collect();
            assert_eq!(rows, (0..16).collect::<Vec<_>>());
        }
        let uneven: Vec<_> = ScorePieces::new(10, 64, 4 * 64 * 4).unwrap().ranges().collect();
        assert_eq!(uneven, [0..4, 4..8, 8..10]);
        let message = ScorePieces::new(16, 64, 255).unwrap_err().to_string();
        assert!(message.ends_with("give at least 256"), "{message}");
        assert_eq!(ScorePieces::new(16, 0, 0).unwrap().pieces, 0);
        assert!(ScorePieces::new(u64::MAX, 2, 8).is_err());
    }
}
