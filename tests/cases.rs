//! The table of field cases stays true: each case has its line, and the tests it names exist.

use std::collections::BTreeMap;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Words that say why a case waits.
const REASON_WORDS: usize = 5;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Rows `| C… | … |` of the table of tests, by case.
fn table() -> BTreeMap<String, String> {
    let readme = read("tests/cases/README.md");
    let (_, tests) = readme.split_once("| case | tests |").expect("a table of tests");
    let mut rows = BTreeMap::new();
    for line in tests.lines().filter(|line| line.starts_with("| C")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [case, covered] = cells[..] else { panic!("not two cells: {line}") };
        let doubled = rows.insert(case.to_owned(), covered.to_owned());
        assert_eq!(doubled, None, "{case} has two lines");
    }
    rows
}

/// Whether `file` has a test function of this name.
fn has_test(file: &str, name: &str) -> bool {
    let text = read(file);
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let function = format!("fn {name}(");
    let at = lines.iter().position(|line| line.starts_with(&function));
    at.is_some_and(|at| {
        let before = lines[..at].iter().rev();
        before
            .take_while(|line| line.starts_with('#') || line.starts_with("//"))
            .any(|line| *line == "#[test]")
    })
}

#[test]
fn every_case_has_a_line_and_no_line_is_without_a_case() {
    let cases = read("tests/cases/bug-cases.md");
    let cases: Vec<_> = cases
        .lines()
        .filter_map(|line| line.strip_prefix("### C"))
        .map(|line| format!("C{}", &line[..3]))
        .collect();
    assert_eq!(cases.len(), 99);
    assert_eq!(table().into_keys().collect::<Vec<_>>(), cases);
}

#[test]
fn every_test_that_the_table_names_exists() {
    let mut wrong = Vec::new();
    for (case, covered) in table() {
        if let Some(reason) = covered.strip_prefix("later: ") {
            assert!(reason.split_whitespace().count() <= REASON_WORDS, "{case}: {reason}");
            continue;
        }
        for test in covered.split(", ") {
            let path = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
            let (file, name) = path
                .and_then(|path| path.split_once("::"))
                .unwrap_or_else(|| panic!("{case}: {test}"));
            if !has_test(file, name) {
                wrong.push(format!("{case}: {test}"));
            }
        }
    }
    assert!(wrong.is_empty(), "no such tests: {wrong:#?}");
}
