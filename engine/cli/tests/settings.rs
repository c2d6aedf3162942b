//! Options from the environment and from a file.

mod tandem;

use std::process::Command;

use tandem::{Finished, finish};

/// Runs the binary with these variables and a file of options, if it is not empty.
fn run(variables: &[(&str, &str)], file: &str, arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tandem.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.args(arguments).envs(variables.iter().copied());
    if !file.is_empty() {
        std::fs::write(&path, file).unwrap();
        command.arg("--config").arg(&path);
    }
    finish(&mut command)
}

/// The options of `serve` that hold, without where they are from.
fn options(variables: &[(&str, &str)], file: &str, arguments: &[&str]) -> Vec<String> {
    let text = run(variables, file, &[&["serve", "--print-config"], arguments].concat()).ok();
    text.lines().map(|line| line.split(" #").next().unwrap().trim_end().to_owned()).collect()
}

#[track_caller]
fn assert_has(options: &[String], expected: &[&str]) {
    for line in expected {
        assert!(options.iter().any(|option| option == line), "{line} in {options:#?}");
    }
}

#[test]
fn the_command_line_goes_before_the_environment_and_that_before_the_file() {
    let file = "port = 1\nmax-num-seqs = 2\ndrain_timeout = 3\n";
    let variables = [("TANDEM_PORT", "10"), ("TANDEM_MAX_NUM_SEQS", "20")];
    let held = options(&variables, file, &["--port", "100"]);
    assert_has(&held, &["port = 100", "max-num-seqs = 20", "drain-timeout = 3"]);
    assert_has(&held, &["# max-queued-requests = 256", "# max-queued-tokens = 8388608"]);
    // A file may be shared with commands that lack some of its options.
    run(&[], file, &["plan", "--print-config"]).ok();
}

#[test]
fn values_of_every_kind_are_as_on_the_command_line() {
    let file = "kernel = [\"norm.rms=scalar\", \"gemm.mxfp8=scalar\"]\nenforce-eager = true\n\
                engram-config = { cpu_offload = true }\ngpu-memory-utilization = 0.5\nhost = \"::1\"\n";
    let held = options(&[], file, &[]);
    assert_has(&held, &["enforce-eager = true", "gpu-memory-utilization = 0.5", "host = \"::1\""]);
    assert_has(&held, &["kernel = [\"norm.rms=scalar\", \"gemm.mxfp8=scalar\"]"]);
    assert_has(&held, &["engram-config = '{\"cpu_offload\":true}'"]);
    for (word, value) in [("1", true), ("yes", true), ("no", false), ("0", false)] {
        let line = format!("enforce-eager = {value}");
        // One that is not set goes together with what it would exclude.
        let file = if value { "" } else { "enforce-eager = true\ngraphs = \"full\"" };
        let held = options(&[("TANDEM_ENFORCE_EAGER", word)], file, &[]);
        assert_has(&held, &[&line]);
        assert_eq!(held.contains(&"graphs = \"full\"".to_owned()), !value);
    }
}

#[test]
fn what_is_printed_is_a_file_that_says_the_same() {
    let given = ["--port", "9", "--kernel", "norm.rms=scalar", "--ctx-size", "512"];
    let held = options(&[], "", &given);
    assert_has(&held, &["max-model-len = 512"]);
    assert_eq!(options(&[], &held.join("\n"), &[]), held);
}

#[test]
fn a_higher_place_takes_out_what_its_options_exclude() {
    let file = "max-pictures = 3\ndraft-max = 1\n";
    let held = options(&[("TANDEM_DRAFT_MAX", "2")], file, &["--language-model-only"]);
    assert_has(&held, &["language-model-only = true", "draft-max = 2"]);
    assert!(!held.iter().any(|option| option.starts_with("max-pictures")), "{held:?}");
}

#[test]
fn secrets_are_not_printed() {
    let text = run(&[("TANDEM_API_KEY", "hush")], "", &["serve", "--print-config"]).ok();
    assert!(text.contains("# api-key is set and not shown"), "{text}");
    assert!(!text.contains("hush"), "{text}");
    let load =
        ["bench", "serve", "--print-config", "--max-concurrency", "1", "--client-key", "hush"];
    let text = run(&[], "", &load).ok();
    assert!(text.contains("# client-key is set and not shown"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}

#[test]
fn mistakes_name_their_place() {
    let serve = |variables: &[(&str, &str)], file: &str| run(variables, file, &["serve"]);
    serve(&[("TANDEM_PORT", "x")], "").refused(2, &["TANDEM_PORT", "'x'", "--port"]);
    serve(&[], "port = 70000").refused(2, &["tandem.toml", "70000", "--port"]);
    serve(&[], "\nprot = 1").refused(2, &["tandem.toml", "--prot"]);
    serve(&[], "\nport = ").refused(2, &["tandem.toml", "line 2"]);
    serve(&[], "port = 1979-05-27").refused(2, &["tandem.toml", "port"]);
    let both = "draft-max = 1\nspeculative-config = { num_speculative_tokens = 2 }";
    serve(&[], both).refused(2, &["tandem.toml", "draft-max", "speculative-config"]);
    serve(&[("TANDEM_CONFIG", "/no/such.toml")], "").refused(2, &["/no/such.toml"]);
}

#[test]
fn a_file_of_keys_without_keys_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, "\n  \n").unwrap();
    let keys = keys.to_str().unwrap();
    run(&[], "", &["serve", "--port", "0", "--api-key-file", keys]).refused(2, &["keys", "no key"]);
    run(&[], "", &["serve", "--api-key-file", "/no/such"]).refused(2, &["/no/such"]);
}
