//! `tandem embed` on the demo.

mod tandem;

use std::fs;

use serde_json::Value;
use tandem::tandem;

fn vectors(arguments: &[&str]) -> Vec<Value> {
    let output = tandem(&[&["embed"], arguments].concat()).ok();
    output.lines().map(|line| serde_json::from_str(line).expect("lines of JSON")).collect()
}

#[test]
fn texts_lines_and_objects_have_the_same_vectors() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (lines, objects, output) = (path("texts.txt"), path("texts.jsonl"), path("out.jsonl"));
    let texts = ["Call me Ishmael.", "Fellow citizens of the Senate", "whale"];
    fs::write(&lines, texts.join("\n\n")).expect("a file of texts");
    let object = |(at, text): (usize, &&str)| {
        format!("{}\n", serde_json::json!({"id": at + 7, "text": text}))
    };
    fs::write(&objects, texts.iter().enumerate().map(object).collect::<String>()).expect("another");
    let direct = vectors(&texts);
    assert_eq!(direct.len(), 3);
    for (at, line) in direct.iter().enumerate() {
        assert_eq!(line["index"], at);
        let vector = line["embedding"].as_array().expect("a vector");
        let squares: f64 =
            vector.iter().map(|value| value.as_f64().expect("a number").powi(2)).sum();
        assert!(vector.len() == 256 && (squares - 1.0).abs() < 1e-6, "{squares}");
        assert!(line["tokens"].as_u64().expect("a count") > 1);
    }
    assert_eq!(vectors(&["--input", &lines, "--max-num-seqs", "1"]), direct);
    let few = ["--max-num-batched-tokens", "3", "--max-num-seqs", "2"];
    assert!(vectors(&[&["--input", &objects, "--output", &output], &few[..]].concat()).is_empty());
    let written = fs::read_to_string(&output).expect("the vectors");
    for (at, (line, direct)) in written.lines().zip(&direct).enumerate() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&line["id"], &line["embedding"]), (&Value::from(at + 7), &direct["embedding"]));
    }
    assert_eq!(written.lines().count(), 3);
}

#[test]
fn what_cannot_be_embedded_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let file = path("texts.jsonl");
    let refused = |content: &[u8], parts: &[&str]| {
        fs::write(&file, content).expect("a file of texts");
        tandem(&["embed", "--input", &file]).refused(2, parts);
    };
    refused(b"", &["it has no text"]);
    refused(b"{\"text\": \"a\"}\n{\"input\": \"b\"}\n", &["line 2", "\"input\"", "unknown field"]);
    refused(b"\xff\n", &["line 1", "not UTF-8"]);
    tandem(&["embed", "--input", &path("nowhere")]).refused(2, &["nowhere"]);
    tandem(&["embed", "a", "--input", &file]).refused(2, &["--input"]);
    // Options of generation are none of its own.
    tandem(&["embed", "a", "--max-tokens", "3"]).refused(2, &["--max-tokens"]);
    let long = "whale ".repeat(3000);
    tandem(&["embed", "a", &long, "--max-model-len", "64"]).refused(2, &["text 2", "64"]);
}
