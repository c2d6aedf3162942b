//! `tandem bench serve` against a server of this binary.

mod tandem;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tandem::tandem;

/// A server that ends with the test.
struct Server(Child, String);

impl Server {
    fn start() -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_tandem"))
            .args(["serve", "--port", "0", "--served-model-name", "whale", "--api-key", "hush"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(server, line.trim().strip_prefix("serving whale on ").unwrap().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn runs_count_what_the_server_answered() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, html, csv) = (path("load.json"), path("load.html"), path("load.csv"));
    let load = ["--num-prompts", "3", "--turns", "2", "--input-len", "8", "--output-len", "4"];
    let shared = ["--prefix-len", "150", "--client-key", "hush", "--url", &server.1];
    let to = ["--save-json", &json, "--save-html", &html, "--max-concurrency", "1,3"];
    let besides = ["--save-csv", &csv, "--num-gpus", "2"];
    let text = tandem(&[&["bench", "serve"], &load[..], &shared, &to, &besides].concat()).ok();
    assert_eq!(text.lines().count(), 3, "{text}");
    let figures: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let runs = figures["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!((&run["completed"], &run["failed"]), (&6.into(), &0.into()), "{run}");
        let output = run["total_output_tokens"].as_u64().unwrap();
        assert!((6..=24).contains(&output), "{run}");
        // Later requests begin as earlier ones did.
        assert!(run["cached_input_tokens"].as_u64().unwrap() > 0, "{run}");
        let (ttft, all) = (&run["ttft"]["p99_ms"], &run["e2el"]["p99_ms"]);
        assert!(ttft.as_f64().unwrap() > 0.0 && ttft.as_f64() <= all.as_f64(), "{run}");
        let rate = |name: &str| run[name].as_f64().unwrap();
        let halved = rate("output_throughput") / 2.0;
        assert!((rate("output_throughput_per_gpu") - halved).abs() < 1e-9, "{run}");
        assert!(rate("output_throughput_per_user") > 0.0, "{run}");
    }
    assert!(runs.iter().any(|run| run["pareto_optimal"] == true), "{runs:?}");
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains("<svg") && page.contains("tokens/s per GPU"));
    let sheet = fs::read_to_string(csv).unwrap();
    let rows: Vec<Vec<_>> = sheet.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    let column = rows[0].iter().position(|head| *head == "e2el_p99_ms").unwrap();
    for (row, run) in rows[1..].iter().zip(runs) {
        assert_eq!(row.len(), rows[0].len());
        assert_eq!(row[column].parse().ok(), run["e2el"]["p99_ms"].as_f64());
    }
    let open = ["--request-rate", "20", "--burstiness", "0.5", "--num-prompts", "4"];
    let more =
        ["--input-len", "4", "--output-len", "2", "--client-key", "hush", "--url", &server.1];
    tandem(&[&["bench", "serve"], &open[..], &more].concat()).ok();
    // Without the key nothing can be asked, and that is known at once.
    let bare = ["bench", "serve", "--max-concurrency", "1", "--url", &server.1];
    tandem(&bare).refused(2, &["401", &server.1]);
}

#[test]
fn mistakes_are_known_before_anything_is_sent() {
    let serve = |more: &[&str]| tandem(&[&["bench", "serve"], more].concat());
    serve(&[]).refused(2, &["--request-rate", "--max-concurrency"]);
    serve(&["--request-rate", "0"]).refused(2, &["--request-rate", "above 0"]);
    serve(&["--request-rate", "1", "--max-concurrency", "1"]).refused(2, &["--request-rate"]);
    serve(&["--max-concurrency", "1", "--device", "cuda:0"]).refused(2, &["--device"]);
    serve(&["--max-concurrency", "1", "--url", "http://127.0.0.1:1"]).refused(2, &["--url"]);
}
