//! Files of requests from outside.

mod tandem;

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use tandem::tandem;
use tempfile::TempDir;

/// A folder with a file of these requests for completions.
fn input(prompts: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let line = |&(id, prompt): &(&str, &str)| {
        let body = json!({ "prompt": prompt, "max_tokens": 6, "temperature": 0 });
        json!({ "custom_id": id, "method": "POST", "url": "/v1/completions", "body": body })
    };
    let lines: String = prompts.iter().map(|prompt| format!("{}\n", line(prompt))).collect();
    fs::write(folder.path().join("in"), lines).unwrap();
    folder
}

fn run(folder: &TempDir) -> tandem::Finished {
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    tandem(&["generate", "--input", &path("in"), "--output", &path("out")])
}

/// What the answers say, by the ids of their requests.
fn answers(folder: &TempDir) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    for line in fs::read_to_string(folder.path().join("out")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = line["response"]["body"]["choices"][0]["text"].as_str().unwrap();
        let id = line["custom_id"].as_str().unwrap();
        assert!(answers.insert(id.to_owned(), text.to_owned()).is_none(), "{id} twice");
    }
    answers
}

#[test]
fn a_batch_says_what_each_prompt_says_alone_and_goes_on_where_it_stopped() {
    let prompts = [("a", "Call me"), ("b", "The whale"), ("c", "In the year"), ("d", "Call me")];
    let folder = input(&prompts);
    run(&folder).ok();
    let whole = answers(&folder);
    for (id, prompt) in prompts {
        let alone = tandem(&["generate", prompt, "-n", "6", "--temp", "0"]).ok();
        assert_eq!(whole[id], alone, "{id}");
    }
    // As a run that was stopped within its third line leaves it.
    let out = folder.path().join("out");
    let text = fs::read_to_string(&out).unwrap();
    let third = text.match_indices('\n').nth(1).unwrap().0 + 20;
    fs::write(&out, &text[..third]).unwrap();
    run(&folder).ok();
    assert_eq!(answers(&folder), whole);
    assert!(fs::read_to_string(&out).unwrap().starts_with(&text[..third - 20]));
    // Nothing is left to do, and nothing is loaded for it.
    let path = out.to_str().unwrap();
    let source = folder.path().join("in");
    let again = ["generate", "--input", source.to_str().unwrap(), "--output", path];
    tandem(&[&again[..], &["--model", "/no/such"]].concat()).ok();
}

#[test]
fn what_is_no_batch_is_refused_before_loading_and_keeps_its_bytes() {
    let folder = input(&[("a", "Call me"), ("a", "Call me")]);
    run(&folder).refused(2, &["line 2", "\"a\""]);
    let folder = input(&[("a", "Call me")]);
    for text in ["a diary\nof mine\n", "a diary without an end"] {
        fs::write(folder.path().join("out"), text).unwrap();
        run(&folder).refused(2, &["out", "name another"]);
        assert_eq!(fs::read_to_string(folder.path().join("out")).unwrap(), text);
    }
    fs::write(folder.path().join("in"), "{\"custom_id\": \"a\"}\n").unwrap();
    run(&folder).refused(2, &["line 1", "method"]);
    tandem(&["generate", "--input", "/no/such", "--output", "/tmp/x"]).refused(2, &["/no/such"]);
    let mixed = ["generate", "--input", "in", "--output", "out", "--temp", "1"];
    tandem(&mixed).refused(2, &["--input", "--temperature"]);
}
