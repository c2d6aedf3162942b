//! `tandem bench throughput`, `latency` and `tune`: the engine under load without a server.

mod tandem;

use std::fs;

use serde_json::Value;
use tandem::{Finished, tandem};

/// Short requests on the demo.
const SHORT: [&str; 6] = ["--input-len", "12", "--output-len", "3", "--max-model-len", "64"];

fn bench(what: &str, more: &[&str]) -> Finished {
    tandem(&[&["bench", what], &SHORT[..], more].concat())
}

#[test]
fn runs_count_what_the_engine_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, html) = (path("run.json"), path("run.html"));
    let to = ["--save-json", &json, "--save-html", &html];
    let read = || serde_json::from_str::<Value>(&fs::read_to_string(&json).unwrap()).unwrap();
    let text =
        bench("throughput", &[&["--num-prompts", "5", "--max-num-seqs", "2"], &to[..]].concat())
            .ok();
    assert_eq!(text.lines().count(), 2, "{text}");
    let run = &read()["runs"][0];
    for (figure, count) in [
        ("completed", 5),
        ("failed", 0),
        ("total_input_tokens", 60),
        ("total_output_tokens", 15),
        ("cached_input_tokens", 0),
    ] {
        assert_eq!(run[figure], count, "{figure}: {run}");
    }
    let (ttft, all) = (&run["ttft"]["p99_ms"], &run["e2el"]["p99_ms"]);
    assert!(ttft.as_f64().unwrap() > 0.0 && ttft.as_f64() <= all.as_f64(), "{run}");
    assert!(fs::read_to_string(&html).unwrap().contains("<svg"));
    let text =
        bench("latency", &[&["--batch-size", "1,3", "--num-iters", "2"], &to[..]].concat()).ok();
    assert_eq!(text.lines().count(), 3, "{text}");
    let runs = read()["runs"].clone();
    assert_eq!((&runs[0]["completed"], &runs[1]["completed"]), (&2.into(), &6.into()));
    // Batches follow one another, so that the whole takes as long as they do together.
    let run = &runs[1];
    let one = run["e2el"]["mean_ms"].as_f64().unwrap() / 1e3;
    assert!(run["duration_s"].as_f64().unwrap() >= 1.5 * one, "{run}");
}

#[test]
fn what_the_tuner_finds_is_a_file_of_options() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("found.toml");
    let file = file.to_str().unwrap();
    let small = ["--most-seqs", "2", "--requests-per-seq", "1", "--max-num-batched-tokens", "16"];
    let found =
        bench("tune", &[&["--ttft-ms", "600000", "--save-config", file], &small[..]].concat());
    assert_eq!(found.code, 0, "{}", found.errors);
    assert!(found.output.contains("max-num-seqs = "), "{}", found.output);
    assert_eq!(fs::read_to_string(file).unwrap(), found.output);
    // One line a trial, below two that say what they are.
    assert!(found.errors.lines().count() >= 5, "{}", found.errors);
    let settings = tandem(&["serve", "--config", file, "--print-config"]).ok();
    let of_file = settings.lines().filter(|line| line.ends_with(file)).count();
    assert_eq!(of_file, 3, "{settings}");
    // Nothing is that fast.
    let none = bench("tune", &[&["--ttft-ms", "0.001"], &small[..]].concat());
    assert_eq!((none.code, none.output.as_str()), (1, ""), "{}", none.errors);
    assert!(none.errors.contains("nothing that was tried keeps the promise"), "{}", none.errors);
}

#[test]
fn mistakes_are_known() {
    let long = ["bench", "throughput", "--input-len", "100", "--max-model-len", "64"];
    tandem(&long).refused(2, &["--input-len", "64"]);
    bench("latency", &["--batch-size", "0"]).refused(2, &["--batch-size"]);
    let drafts = r#"{"num_speculative_tokens": 1}"#;
    bench("tune", &["--speculative-config", drafts]).refused(2, &["--speculative-config"]);
    bench("tune", &["--tpot-ms", "0"]).refused(2, &["--tpot-ms"]);
}
