//! Records of conformance runs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::line::{Key, Line};

/// The kinds of trial, all of which a proof needs.
const KINDS: [&str; 3] = ["edges", "prop", "large"];

/// What records say of a row, over all devices that are the same board.
struct Tested {
    tuned: bool,
    line: Line,
    /// Cases held, refused and failed, by kind.
    kinds: [[u64; 3]; 3],
}

/// The rows of boards in records, each a name and its text.
///
/// # Errors
/// Which line is none, or that the records are of several builds.
pub(super) fn lines(records: &[(&str, String)]) -> Result<BTreeMap<Key, Line>, String> {
    let mut rows: BTreeMap<Key, Tested> = BTreeMap::new();
    for (name, text) in records {
        for (number, text) in text.lines().enumerate() {
            let wrong = |why: String| format!("{name}, line {}: {why}", number + 1);
            let Some((key, tested)) = parse(text).map_err(wrong)? else { continue };
            let Some(before) = rows.get_mut(&key) else {
                rows.insert(key, tested);
                continue;
            };
            let identity =
                |line: &Line| [&line.image, &line.commit, &line.driver].map(String::clone);
            if identity(&before.line) != identity(&tested.line) {
                let [board, operator, row, _] = &key;
                return Err(wrong(format!(
                    "{operator} {row} on {board} is of two builds or drivers; give one record at a time"
                )));
            }
            before.line.date = before.line.date.clone().max(tested.line.date);
            for (sum, more) in before.kinds.iter_mut().flatten().zip(tested.kinds.iter().flatten())
            {
                *sum += more;
            }
        }
    }
    if rows.is_empty() && !records.is_empty() {
        return Err("there is no row of a board in the records: make them on one".into());
    }
    Ok(rows.into_iter().map(|(key, tested)| (key, tested.judged())).collect())
}

impl Tested {
    fn judged(self) -> Line {
        let sum = |i: usize| self.kinds.iter().map(|kind| kind[i]).sum();
        let cases: [u64; 3] = [sum(0), sum(1), sum(2)];
        let missing = KINDS.iter().zip(&self.kinds).find(|(_, counts)| counts[0] == 0);
        let standing = match (cases[2], missing) {
            (1.., _) => format!("{} failed", cases[2]),
            _ if !self.tuned => "portable".into(),
            (0, Some((kind, _))) => format!("no {kind} case held"),
            (0, None) => "proven".into(),
        };
        Line { cases, standing, ..self.line }
    }
}

/// One line; `None` for a device without a driver and for a simulated one, which are no boards.
fn parse(text: &str) -> Result<Option<(Key, Tested)>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let field = |name: &str| -> Result<String, String> {
        let field = value[name].as_str();
        let clean = |text: &&str| !text.is_empty() && !text.contains(['|', '\n']);
        Ok(field.filter(clean).ok_or(format!("{name} is missing or not a word"))?.into())
    };
    let is_simulated = value["board"].as_str().is_some_and(|board| board.starts_with("simulated "));
    if value["driver"].is_null() || is_simulated {
        return Ok(None);
    }
    if value["commit"].is_null() {
        let remedy = "build it with cargo xtask carry from a clean working tree";
        return Err(format!("the program does not know its commit: {remedy}"));
    }
    let count = |kind: &str, name: &str| {
        let count = value["cases"][kind][name].as_u64();
        count.ok_or(format!("the number of {kind} cases that {name} is missing"))
    };
    let mut kinds = [[0; 3]; 3];
    for (kind, counts) in KINDS.iter().zip(&mut kinds) {
        for (name, place) in ["held", "refused", "failed"].iter().zip(counts) {
            *place = count(kind, name)?;
        }
    }
    let key = [field("board")?, field("operator")?, field("row")?, field("arch")?];
    let line = Line {
        bits: field("bits")?,
        cases: [0; 3],
        standing: String::new(),
        image: field("image")?,
        date: field("date")?,
        driver: field("driver")?,
        commit: field("commit")?,
    };
    Ok(Some((key, Tested { tuned: field("rank")? == "tuned", line, kinds })))
}
