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

/// The records of proofs, and how the targets of their backends begin.
const PROVEN: [(&str, &str); 2] =
    [("kernels-cuda/proven.txt", "sm_"), ("kernels-rocm/proven.txt", "gfx")];

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
    let matrix = root().join(MATRIX);
    let [cuda, rocm] = PROVEN.map(|(path, _)| read(&root().join(path)));
    let mut table = parse(&read(&matrix)?, [&cuda?, &rocm?])?;
    let texts = records.iter().map(|path| Ok((*path, read(Path::new(path))?)));
    let texts = texts.collect::<Result<Vec<_>, String>>()?;
    let lines = run::lines(&texts)?;
    let (taken, proofs) = (lines.len(), lines.values().filter(|line| line.is_proven()).count());
    table.extend(lines);
    write(&matrix, &render(&table))?;
    for ((path, _), proven) in PROVEN.iter().zip(proofs_of(&table)) {
        write(&root().join(path), &proven)?;
    }
    Ok(format!("{MATRIX} took {taken} rows, {proofs} of them tuned and proven"))
}

/// The table of `MATRIX.md`, with the digests that only the proofs spell out.
fn parse(matrix: &str, proven: [&str; 2]) -> Result<Table, String> {
    let mut table = line::table(matrix).map_err(|why| format!("{MATRIX}: {why}"))?;
    for ((path, _), text) in PROVEN.iter().zip(proven) {
        for (number, text) in text.lines().enumerate().filter(|(_, text)| !text.starts_with('#')) {
            spell_out(&mut table, text)
                .map_err(|what| format!("{path}, line {}: {what}", number + 1))?;
        }
    }
    let short = |line: &Line| line.is_proven() && line.image.len() < 64;
    match table.iter().find(|(_, line)| short(line)) {
        None => Ok(table),
        Some(([board, operator, row, _], _)) => Err(format!(
            "no record of proofs has {operator} {row}, which {MATRIX} has proven on {board}"
        )),
    }
}

/// Takes the digests of one proof into the table.
fn spell_out(table: &mut Table, proof: &str) -> Result<(), &'static str> {
    let fields: Vec<&str> = proof.split(" | ").collect();
    let [board, operator, row, target, image, date, driver, commit] = fields[..] else {
        return Err("eight fields are needed");
    };
    let key = [board, operator, row, target].map(String::from);
    let line = table.get_mut(&key).ok_or("it is not in the matrix")?;
    let same = line.is_proven()
        && image.starts_with(&line.image)
        && commit.starts_with(&line.commit)
        && (date, driver) == (&line.date, &line.driver);
    if !same {
        return Err("the matrix has another run of it");
    }
    (line.image, line.commit) = (image.into(), commit.into());
    Ok(())
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

/// The records of proofs.
fn proofs_of(table: &Table) -> [String; 2] {
    PROVEN.map(|(_, targets)| {
        let mut text = String::from(HEADER);
        let proven = table.iter().filter(|([.., t], l)| l.is_proven() && t.starts_with(targets));
        for ([board, operator, row, target], line) in proven {
            let Line { image, date, driver, commit, .. } = line;
            let key = format!("{board} | {operator} | {row} | {target}");
            writeln!(text, "{key} | {image} | {date} | {driver} | {commit}").expect("strings grow");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = include_str!("matrix/run.jsonl");

    fn texts(proven: &[String; 2]) -> [&str; 2] {
        [&proven[0], &proven[1]]
    }

    fn taken() -> Table {
        run::lines(&[("run.jsonl", RUN.into())]).expect("a record")
    }

    #[test]
    fn both_files_are_as_they_would_be_written_again() {
        let read = |path| fs::read_to_string(root().join(path)).expect("committed");
        let proven = PROVEN.map(|(path, _)| read(path));
        let table = parse(&read(MATRIX), texts(&proven)).expect("the files agree");
        assert_eq!(read(MATRIX), render(&table));
        assert_eq!(proven, proofs_of(&table));
    }

    #[test]
    fn a_table_that_is_written_is_read_back() {
        let table = taken();
        let (matrix, proven) = (render(&table), proofs_of(&table));
        let again = parse(&matrix, texts(&proven)).expect("the files agree");
        assert_eq!(render(&again), matrix);
        assert_eq!(proofs_of(&again), proven);
        let none = parse(&render(&Table::new()), [HEADER; 2]).expect("the files agree");
        assert!(none.is_empty());
    }

    #[test]
    fn files_that_disagree_are_refused() {
        let table = taken();
        let (matrix, [proven, none]) = (render(&table), proofs_of(&table));
        assert_eq!(none, HEADER);
        let refused =
            |matrix: &str, proven: &str| parse(matrix, [proven, &none]).expect_err("they disagree");
        assert!(refused(&matrix, HEADER).contains("has gemm.mxfp8 wide, which"));
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
        let [proven, none] = proofs_of(&taken());
        assert_eq!(none, HEADER);
        let proofs: Vec<_> = proven.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(proofs.len(), 1, "{proven}");
        assert!(proofs[0].starts_with("NVIDIA H200 | gemm.mxfp8 | wide | sm_90a | 541f"));
    }

    #[test]
    fn proofs_go_to_the_backend_of_their_target() {
        let amd = RUN.replace("NVIDIA H200", "AMD Instinct MI300X").replace("sm_90a", "gfx942");
        let mut table = taken();
        table.extend(run::lines(&[("amd", amd)]).expect("a record"));
        let proofs = proofs_of(&table);
        let [cuda, rocm] = texts(&proofs).map(|text| text.strip_prefix(HEADER).expect("a header"));
        assert!(cuda.starts_with("NVIDIA H200 | gemm.mxfp8 | wide | sm_90a | "), "{cuda}");
        assert!(rocm.starts_with("AMD Instinct MI300X | gemm.mxfp8 | wide | gfx942 | "), "{rocm}");
        assert!(parse(&render(&table), texts(&proofs)).is_ok());
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
        assert_eq!(proofs_of(&table), [HEADER; 2], "the row failed since");
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
        let simulated = RUN.replace("NVIDIA H200", "simulated AMD Instinct MI300X");
        assert!(refused(simulated).contains("no row of a board"));
        let two = format!("{RUN}{}", RUN.replace("541f", "641f"));
        assert!(refused(two).contains("of two builds"));
    }
}
