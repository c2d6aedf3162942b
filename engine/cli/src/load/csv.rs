//! Runs as comma-separated values: a line of heads, then one for each run.

use serde_json::{Map, Value};

/// The text of runs, each an object of equal keys. Objects inside become a column for each of their
/// figures; failures by kind have no columns of their own.
pub(super) fn csv(runs: &[Map<String, Value>]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let heads = cells(first).into_iter().map(|(head, _)| head);
    let mut text = line(heads);
    for run in runs {
        text += &line(cells(run).into_iter().map(|(_, value)| value));
    }
    text
}

fn cells(run: &Map<String, Value>) -> Vec<(String, String)> {
    let mut cells = Vec::new();
    for (name, value) in run.iter().filter(|(name, _)| *name != "failures") {
        match value {
            Value::Object(figures) => {
                let figures = cells_of(figures);
                cells.extend(figures.map(|(figure, value)| (format!("{name}_{figure}"), value)));
            }
            value => cells.push((name.clone(), plain(value))),
        }
    }
    cells
}

fn cells_of(figures: &Map<String, Value>) -> impl Iterator<Item = (&String, String)> {
    figures.iter().map(|(name, value)| (name, plain(value)))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// As RFC 4180 has it.
fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| match cell.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_run_is_a_line_under_the_same_heads() {
        let run = |load: &str, mean: Option<f64>| {
            let run = json!({
                "load": load, "failed": 2, "failures": { "429, slow": 2 }, "ttft": { "mean_ms": mean },
            });
            let Value::Object(run) = run else { panic!("an object") };
            run
        };
        let text = csv(&[run("1", Some(0.5)), run("a \"b\", c", None)]);
        let mut lines = text.split("\r\n");
        let heads: Vec<_> = lines.next().unwrap().split(',').collect();
        let (load, mean) = (column(&heads, "load"), column(&heads, "ttft_mean_ms"));
        assert_eq!((heads.len(), column(&heads, "failed") < 3), (3, true));
        let cells: Vec<_> = lines.next().unwrap().split(',').collect();
        assert_eq!((cells[load], cells[mean], cells.len()), ("1", "0.5", 3));
        assert!(lines.next().unwrap().contains("\"a \"\"b\"\", c\""));
        assert_eq!((lines.next(), lines.next()), (Some(""), None));
        assert_eq!(csv(&[]), "");
    }

    fn column(heads: &[&str], name: &str) -> usize {
        heads.iter().position(|head| *head == name).unwrap()
    }
}
