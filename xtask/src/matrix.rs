//! `docs/MATRIX.md` and the record of proofs, from the records of conformance runs.

mod line;
mod run;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::workspace::{root, write};
use line::{Key, Line};

const MATRIX: &str = "docs/MATRIX.md";
const PROVEN: &str = "kernels-cuda/proven.txt";

/// What stands above the tables.
const INTRODUCTION: &str = "\
# Conformance by board

Every kernel row whose conformance run on a board is on record. Written by `cargo xtask matrix` from such runs;
`CONTRIBUTING.md` says how to make one. A tuned row is proven when every kind of case was run, no case failed, and the
image in the build is the one that ran; it is then chosen, unless it adds products in less than f32, which takes its
name. Portable rows need no proof. Cases that a row does not take are refused.
";

/// What stands above the proofs.
const HEADER: &str = "\
# Tuned rows whose conformance run on a board passed: written by `cargo xtask matrix`, never by hand.
# board | operator | row | target | sha256 of the image | date | driver | commit
";

/// Every line on record, by board, operator, row and target.
type Table = BTreeMap<Key, Line>;

/// Takes the records into both files; rows that they do not tell of stay.
///
/// # Errors
/// Which record is no record of a run on a board, or which file is not as this wrote it.
pub(crate) fn matrix(records: &[&str]) -> Result<String, String> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let (matrix, proven) = (root().join(MATRIX), root().join(PROVEN));
    let mut table = parse(&read(&matrix)?, &read(&proven)?)?;
    let texts = records.iter().map(|path| Ok((*path, read(Path::new(path))?)));
    let texts = texts.collect::<Result<Vec<_>, String>>()?;
    let lines = run::lines(&texts)?;
    let (taken, proofs) = (lines.len(), lines.values().filter(|line| line.is_proven()).count());
    table.extend(lines);
    write(&matrix, &render(&table))?;
    write(&proven, &proofs_of(&table))?;
    Ok(format!("{MATRIX} and {PROVEN} took {taken} rows, {proofs} of them tuned and proven"))
}

/// The table of `MATRIX.md`, with the digests that only the proofs spell out.
fn parse(matrix: &str, proven: &str) -> Result<Table, String> {
    let mut table = line::table(matrix).map_err(|why| format!("{MATRIX}: {why}"))?;
    for (number, text) in proven.lines().enumerate().filter(|(_, text)| !text.starts_with('#')) {
        let fields: Vec<&str> = text.split(" | ").collect();
        let wrong = |what: &str| format!("{PROVEN}, line {}: {what}", number + 1);
        let [board, operator, row, target, image, date, driver, commit] = fields[..] else {
            return Err(wrong("eight fields are needed"));
        };
        let key = [board, operator, row, target].map(String::from);
        let line = table.get_mut(&key).ok_or_else(|| wrong("it is not in the matrix"))?;
        let same = line.is_proven()
            && image.starts_with(&line.image)
            && commit.starts_with(&line.commit)
            && (date, driver) == (&line.date, &line.driver);
        if !same {
            return Err(wrong("the matrix has another run of it"));
        }
        (line.image, line.commit) = (image.into(), commit.into());
    }
    let short = |line: &Line| line.is_proven() && line.image.len() < 64;
    match table.iter().find(|(_, line)| short(line)) {
        None => Ok(table),
        Some(([board, operator, row, _], _)) => {
            Err(format!("{PROVEN} lacks {operator} {row}, which {MATRIX} has proven on {board}"))
        }
    }
}

/// `MATRIX.md`: a table for every board.
fn render(table: &Table) -> String {
    let mut text = String::from(INTRODUCTION);
    if table.is_empty() {
        text.push_str("\nNo run is on record yet.\n");
    }
    let mut last = None;
    for (key @ [board, ..], line) in table {
        if last != Some(board) {
            write!(text, "\n## {board}\n\n{}", line::TITLE).expect("strings grow");
            last = Some(board);
        }
        writeln!(text, "{}", line.cells(key)).expect("strings grow");
    }
    text
}

/// The record of proofs.
fn proofs_of(table: &Table) -> String {
    let mut text = String::from(HEADER);
    for ([board, operator, row, target], line) in table.iter().filter(|(_, l)| l.is_proven()) {
        let Line { image, date, driver, commit, .. } = line;
        let key = format!("{board} | {operator} | {row} | {target}");
        writeln!(text, "{key} | {image} | {date} | {driver} | {commit}").expect("strings grow");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = include_str!("matrix/run.jsonl");

    fn taken() -> Table {
        run::lines(&[("run.jsonl", RUN.into())]).expect("a record")
    }

    #[test]
    fn both_files_are_as_they_would_be_written_again() {
        let read = |path| fs::read_to_string(root().join(path)).expect("committed");
        let table = parse(&read(MATRIX), &read(PROVEN)).expect("the files agree");
        assert_eq!(read(MATRIX), render(&table));
        assert_eq!(read(PROVEN), proofs_of(&table));
    }

    #[test]
    fn a_table_that_is_written_is_read_back() {
        let table = taken();
        let (matrix, proven) = (render(&table), proofs_of(&table));
        let again = parse(&matrix, &proven).expect("the files agree");
        assert_eq!(render(&again), matrix);
        assert_eq!(proofs_of(&again), proven);
        let none = parse(&render(&Table::new()), HEADER).expect("the files agree");
        assert!(none.is_empty());
    }

    #[test]
    fn files_that_disagree_are_refused() {
        let table = taken();
        let (matrix, proven) = (render(&table), proofs_of(&table));
        let refused =
            |matrix: &str, proven: &str| parse(matrix, proven).expect_err("they disagree");
        assert!(refused(&matrix, HEADER).contains("lacks gemm.mxfp8 wide"));
        assert!(refused(&render(&Table::new()), &proven).contains("not in the matrix"));
        let other = proven.replace("2026-11-30", "2026-11-29");
        assert!(refused(&matrix, &other).contains("another run"));
        let unproven = matrix.replace("| proven |", "| 1 failed |");
        assert!(refused(&unproven, &proven).contains("another run"));
        assert!(refused(&matrix.replace("| wide |", "| wide | x |"), &proven).contains("cells"));
    }

    #[test]
    fn a_row_is_proven_when_every_kind_of_case_held() {
        let standing = |operator: &str, row: &str| {
            let mut lines = taken().into_iter();
            let found = lines.find(|([_, o, r, _], _)| o == operator && r == row);
            found.map(|(_, line)| line.standing.clone()).expect("recorded")
        };
        assert_eq!(standing("gemm.mxfp8", "wide"), "proven");
        assert_eq!(standing("gemm.mxfp8", "portable"), "portable");
        assert_eq!(standing("gemm.mxfp8", "leans"), "1 failed");
        assert_eq!(standing("gemm.mxfp8", "half"), "no large case held");
        let proven = proofs_of(&taken());
        let proofs: Vec<_> = proven.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(proofs.len(), 1, "{proven}");
        assert!(proofs[0].starts_with("NVIDIA H200 | gemm.mxfp8 | wide | sm_90a | 541f"));
    }

    #[test]
    fn a_later_run_replaces_its_rows_and_no_others() {
        let failed = RUN.replace(
            r#""large":{"held":2,"refused":0,"failed":0}"#,
            r#""large":{"held":1,"refused":0,"failed":1}"#,
        );
        let later: Vec<_> = failed.lines().filter(|l| l.contains(r#""wide""#)).collect();
        let mut table = taken();
        table.extend(run::lines(&[("later", later.join("\n"))]).expect("a record"));
        assert_eq!(table.len(), taken().len());
        assert_eq!(proofs_of(&table), HEADER, "the row failed since");
    }

    #[test]
    fn what_is_no_record_of_one_build_is_refused() {
        let refused = |text: String| run::lines(&[("r", text)]).map(|_| ()).expect_err("no record");
        let unknown = r#""commit":"0123456789abcdef0123456789abcdef01234567""#;
        assert!(refused(RUN.replace(unknown, r#""commit":null"#)).contains("cargo xtask carry"));
        assert!(refused(RUN.replace(r#""board":"NVIDIA H200","#, "")).contains("line 2: board"));
        assert!(refused(RUN.replace("{", "")).contains("line 1"));
        let hosts: Vec<_> = RUN.lines().filter(|l| l.contains(r#""driver":null"#)).collect();
        assert!(!hosts.is_empty());
        assert!(refused(hosts.join("\n")).contains("no row of a board"));
        let two = format!("{RUN}{}", RUN.replace("541f", "641f"));
        assert!(refused(two).contains("of two builds"));
    }
}
