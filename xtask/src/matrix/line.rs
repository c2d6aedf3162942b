//! One line of the matrix.

use std::collections::BTreeMap;

/// Board, operator, row and target.
pub(super) type Key = [String; 4];

/// The titles of a board's table.
pub(super) const TITLE: &str = "\
| operator | row | target | bits | held | refused | failed | standing | image | date | driver | commit |
|---|---|---|---|--:|--:|--:|---|---|---|---|---|
";

/// Hexadecimal digits of digests and commits that the matrix shows.
const SHOWN: usize = 12;

/// What is on record of a row on a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its bits.
    pub(super) bits: String,
    /// Cases held, refused and failed.
    pub(super) cases: [u64; 3],
    /// `proven`, `portable`, or why a tuned row is not proven.
    pub(super) standing: String,
    /// Digest of its machine code.
    pub(super) image: String,
    /// The day of the run.
    pub(super) date: String,
    /// The driver it ran on.
    pub(super) driver: String,
    /// What the program was built from.
    pub(super) commit: String,
}

impl Line {
    /// Whether a tuned row may be chosen for it.
    pub(super) fn is_proven(&self) -> bool {
        self.standing == "proven"
    }

    /// Its line of the table.
    pub(super) fn cells(&self, key: &Key) -> String {
        let [_, operator, row, target] = key;
        let [held, refused, failed] = self.cases;
        let Line { bits, standing, date, driver, .. } = self;
        let short = |digits: &str| digits.chars().take(SHOWN).collect::<String>();
        let (image, commit) = (short(&self.image), short(&self.commit));
        format!(
            "| {operator} | {row} | {target} | {bits} | {held} | {refused} | {failed} | {standing} | {image} \
             | {date} | {driver} | {commit} |"
        )
    }
}

/// The lines of a matrix.
///
/// # Errors
/// Which line is not as [`Line::cells`] writes it.
pub(super) fn table(text: &str) -> Result<BTreeMap<Key, Line>, String> {
    let (mut table, mut board) = (BTreeMap::new(), None);
    for (number, text) in text.lines().enumerate() {
        if let Some(name) = text.strip_prefix("## ") {
            board = Some(name);
        }
        if !text.starts_with('|') || TITLE.lines().any(|title| title == text) {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        let board = board.ok_or_else(|| wrong("it stands under no board"))?;
        let inside = text.strip_prefix("| ").and_then(|t| t.strip_suffix(" |")).unwrap_or(text);
        let cells: Vec<&str> = inside.split(" | ").collect();
        let [
            operator,
            row,
            target,
            bits,
            held,
            refused,
            failed,
            standing,
            image,
            date,
            driver,
            commit,
        ] = cells[..]
        else {
            return Err(wrong("a line has twelve cells"));
        };
        let count = |cell: &str| cell.parse().map_err(|_| wrong("a count is no number"));
        let line = Line {
            bits: bits.into(),
            cases: [count(held)?, count(refused)?, count(failed)?],
            standing: standing.into(),
            image: image.into(),
            date: date.into(),
            driver: driver.into(),
            commit: commit.into(),
        };
        table.insert([board, operator, row, target].map(String::from), line);
    }
    Ok(table)
}
