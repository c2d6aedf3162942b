//! The demo checkpoint from outside: texts, conversations, measurements.

mod tandem;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use tandem::{PROGRESS, tandem, tandem_with_input};

const PROMPT: &str = "Fellow citizens of the Senate and House of Representatives:";

fn generate(arguments: &[&str]) -> String {
    tandem(&[&["generate", PROMPT, "-n", "24"], arguments].concat()).ok()
}

#[test]
fn the_same_text_whatever_computes_it() {
    let text = generate(&["--temperature", "0"]);
    assert!(text.chars().count() > 24, "{text:?}");
    for arguments in [
        &["--temp", "0", "--device", "reference:0,1"][..],
        &["--temp", "0", "--threads", "1"],
        &["--temp", "0", "--draft-max", "5"],
        &["--temp", "0", "--drafts", "dspark,adaptive"],
        &["--temp", "0", "--drafts", "ngram"],
        &["--temp", "0", "--drafts", "off"],
        &["--temp", "0", "--enforce-eager"],
        &["--temp", "0", "--engram-config", r#"{"cpu_offload": false}"#],
        &["--temp", "0", "--speculative-config", r#"{"num_speculative_tokens": 2}"#],
        &["--temp", "0", "--max-num-batched-tokens", "7"],
        &["--temp", "0", "--kernel", "gemm.mxfp8=scalar", "--kernel", "attn.sparse=scalar"],
        &["--top-k", "1"],
        &["--temp", "0", "--model", concat!(env!("CARGO_MANIFEST_DIR"), "/demo")],
    ] {
        assert_eq!(generate(arguments), text, "{arguments:?}");
    }
}

/// A golden picture of the demo.
fn picture(name: &str) -> String {
    format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens/{}.png"), name)
}

#[test]
fn pictures_before_a_text_whatever_computes_them() {
    let (first, second) = (picture("picture"), picture("picture_odd"));
    let with = |pictures: &[&str], more: &[&str]| {
        let pictures: Vec<_> = pictures.iter().flat_map(|file| ["--image", file]).collect();
        generate(&[&pictures[..], &["--temp", "0"], more].concat())
    };
    let one = with(&[&first], &[]);
    let two = with(&[&first, &second], &[]);
    assert!(one != generate(&["--temp", "0"]) && two != one && with(&[&second], &[]) != one);
    for more in [
        &["--device", "reference:0,1"][..],
        &["--max-num-batched-tokens", "7"],
        &["--max-pictures", "1", "--draft-max", "5"],
    ] {
        assert_eq!(with(&[&first], more), one, "{more:?}");
        assert_eq!(with(&[&first, &second], more), two, "{more:?}");
    }
}

#[test]
fn a_picture_is_part_of_one_message() {
    let chat = ["chat", "--temp", "0", "-n", "8"];
    let answer = |input: &str| {
        let finished = tandem_with_input(&chat, input.as_bytes());
        assert_eq!(finished.code, 0, "{}", finished.errors);
        finished.output
    };
    let (picture, odd) = (picture("picture"), picture("picture_odd"));
    let (blind, ask) = (answer("What is it?\n"), "What is it?\n");
    let seen = answer(&format!("/image {picture}\n{ask}"));
    assert_ne!(seen, blind);
    assert_ne!(answer(&format!("/image {odd}\n{ask}")), seen);
    assert_eq!(answer(&format!("/image {picture}\n/reset\n{ask}")), blind);
    let unsaid = format!("/image {picture}\n{ask}/reset\n/image {picture}\n{ask}");
    assert_eq!(answer(&unsaid), format!("{seen}{seen}"));
    for (input, parts) in [
        ("/image /no/such.png\n", &["/no/such.png", "check the path"][..]),
        ("/image Cargo.toml\n", &["Cargo.toml", "neither PNG nor JPEG"]),
    ] {
        tandem_with_input(&chat, input.as_bytes()).refused(2, parts);
    }
    let input = format!("/image {picture}\n");
    tandem_with_input(&[&chat[..], &["--language-model-only"]].concat(), input.as_bytes())
        .refused(2, &["/image", "without it", "text alone"]);
}

#[test]
fn a_seed_repeats_a_text() {
    let seeded = generate(&["--seed", "7"]);
    assert_eq!(generate(&["-s", "7", "--device", "reference:0,1"]), seeded);
    assert_ne!(generate(&["--seed", "8"]), seeded);
}

#[test]
fn a_text_ends_before_a_stop_string() {
    let text = generate(&["--temp", "0"]);
    let stop = text.split_whitespace().nth(3).unwrap();
    let expected = &text[..text.find(stop).unwrap()];
    assert_eq!(generate(&["--temp", "0", "--stop", stop]), expected);
}

#[test]
fn the_prompt_may_come_from_a_file_or_standard_input() {
    let text = generate(&["--temp", "0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prompt.txt");
    fs::write(&file, PROMPT).unwrap();
    let path = file.to_str().unwrap();
    let rest = ["-n", "24", "--temp", "0"];
    assert_eq!(tandem(&[&["generate", "--file", path][..], &rest].concat()).ok(), text);
    let from_input = [&["generate", "-f", "-"][..], &rest].concat();
    assert_eq!(tandem_with_input(&from_input, PROMPT.as_bytes()).ok(), text);
}

#[test]
fn what_cannot_be_generated_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prompt.txt");
    fs::write(&file, b"good \xff bad").unwrap();
    let path = file.to_str().unwrap();
    let png = picture("picture");
    for (arguments, parts) in [
        (&["generate"][..], &["<PROMPT>"][..]),
        (&["generate", "-f", path], &[path, "not UTF-8 from byte 5"]),
        (&["generate", "-f", "/no/such"], &["/no/such", "check the path"]),
        (&["generate", PROMPT, "-c", "8"], &["prompt: ", "shorten it"]),
        (&["generate", PROMPT, "-c", "99999999"], &["--max-model-len", "65536"]),
        (&["generate", PROMPT, "-n", "0"], &["--max-tokens", "'0'"]),
        (&["generate", PROMPT, "--top-p", "2"], &["top_p", "2"]),
        (&["generate", PROMPT, "--top-k", "-2"], &["top_k", "-2"]),
        (&["generate", PROMPT, "--temp", "NaN"], &["temperature", "NaN"]),
        (&["generate", PROMPT, "--image", "/no/such.png"], &["/no/such.png", "check the path"]),
        (&["generate", PROMPT, "--image", path], &[path, "neither PNG nor JPEG"]),
        (
            &["generate", PROMPT, "--image", &png, "--max-pictures", "0"],
            &["pictures", "text alone"],
        ),
        (&["generate", PROMPT, "--max-pictures", "9999"], &["--max-pictures", "0 to 4096"]),
        (&["generate", PROMPT, "--image", &png, "-c", "8"], &["prompt: ", "shorten it"]),
        (&["generate", PROMPT, "--draft-max", "6"], &["6", "0 to 5"]),
        (&["generate", PROMPT, "--drafts", "dspark:6"], &["6", "0 to 5"]),
        (
            &["generate", PROMPT, "--drafts", "ngram,adaptive"],
            &["--drafts", "the model's own stages"],
        ),
        (
            &["generate", PROMPT, "--drafts", "ngram", "--draft-p-min", "0.5"],
            &["--draft-p-min", "own stages"],
        ),
        (&["generate", PROMPT, "--draft-p-min", "1.5"], &["--draft-p-min", "0 to 1"]),
        (
            &["generate", PROMPT, "--draft-max", "2", "--drafts", "dspark:3"],
            &["--draft-max", "--drafts says 3"],
        ),
        (&["generate", PROMPT, "--speculative-config", "{\"x\":1}"], &["x", "known:"]),
        (&["generate", PROMPT, "--max-num-batched-tokens", "0"], &["--max-num-batched-tokens"]),
        (&["generate", PROMPT, "--gpu-memory-utilization", "2"], &["2 is not above 0"]),
        (&["generate", PROMPT, "--model", "v4.1-flash"], &["v4.1-flash", "without weights"]),
        (
            &["generate", PROMPT, "--device", "reference:0,1,2"],
            &["--device: 3 ranks cannot share", "1, 2 work"],
        ),
    ] {
        let finished = tandem(arguments);
        assert_eq!(finished.output, "", "{arguments:?}");
        finished.refused(2, parts);
    }
}

#[test]
fn c098_what_does_not_fit_is_refused_before_loading() {
    let finished = tandem(&["generate", PROMPT, "--gpu-memory-utilization", "0.00001"]);
    assert_eq!(finished.output, "");
    finished.refused(3, &["does not fit: ", "bytes of reference", "smaller --max-model-len"]);
}

#[test]
fn a_conversation_has_a_memory_that_can_be_reset() {
    let chat = ["chat", "--temp", "0", "-n", "12", "--system-prompt", "Speak of the sea."];
    let answers = |input: &str| {
        let finished = tandem_with_input(&chat, input.as_bytes());
        assert_eq!(finished.code, 0, "{}", finished.errors);
        finished.output
    };
    let first = answers("Who are you?\n/exit\nnever read\n");
    assert!(!first.trim().is_empty());
    assert_eq!(answers("Who are you?\n"), first);
    assert_eq!(answers("Who are you?\n/reset\n\nWho are you?\n"), format!("{first}{first}"));
    let twice = answers("Who are you?\nWho are you?\n");
    assert!(twice.starts_with(&first) && twice != format!("{first}{first}"), "{twice}");
    let other = tandem_with_input(&chat[..5], b"Who are you?\n");
    assert_ne!(other.output, first, "without the system prompt");
}

#[test]
fn thinking_is_shown_apart() {
    let chat = ["chat", "--temp", "0", "-n", "12", "--thinking", "on"];
    let finished = tandem_with_input(&chat, b"Hello\n/no\n");
    assert!(finished.output.starts_with("<think>\n"), "{}", finished.output);
    assert!(finished.output.ends_with("\n</think>\n\n"), "{}", finished.output);
    assert!(finished.errors.contains("error: no command /no; /help lists them"));
    let quiet = tandem_with_input(&["chat", "--temp", "0", "-n", "12"], b"Hello\n");
    assert!(!quiet.output.contains("<think>"), "{}", quiet.output);
}

#[test]
fn a_message_that_leaves_no_room_is_refused() {
    tandem_with_input(&["chat", "-c", "16"], PROMPT.as_bytes())
        .refused(2, &["prompt", "shorten it"]);
}

#[test]
fn ctrl_c_stops_the_answer_and_not_the_program() {
    let mut chat = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .args(["chat", "--temp", "0", "-n", "60000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = chat.stdin.take().unwrap();
    let mut output = chat.stdout.take().unwrap();
    input.write_all(b"Who are you?\n").unwrap();
    // The answer has begun when its first byte is here.
    output.read_exact(&mut [0]).unwrap();
    let kill = Command::new("kill").args(["-INT", &chat.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let errors = BufReader::new(chat.stderr.take().unwrap());
    let drained = std::thread::spawn(move || output.read_to_end(&mut Vec::new()).unwrap());
    let mut lines = errors.lines().map(Result::unwrap);
    let line = lines.find(|line| !line.starts_with(PROGRESS)).unwrap();
    assert_eq!(line, "[stopped]");
    input.write_all(b"/exit\n").unwrap();
    assert_eq!(chat.wait().unwrap().code(), Some(0));
    drained.join().unwrap();
}

#[test]
fn a_bench_prints_its_figures_and_judges_bounds() {
    let small = ["bench", "-p", "40", "-n", "8", "-r", "1"];
    let text = tandem(&small).ok();
    for (name, unit) in [
        ("ready", " ms"),
        ("prefill", " tokens/s"),
        ("decode", " tokens/s"),
        ("decode, drafts", "drafts stood"),
        ("resident", " MB"),
    ] {
        let found = text.lines().any(|line| line.starts_with(name) && line.contains(unit));
        assert!(found, "{name} in\n{text}");
    }
    let missed =
        tandem(&[&small[..], &["--min-decode", "1e12", "--max-resident", "1e12"]].concat());
    assert_eq!((missed.code, missed.errors.as_str()), (1, ""));
    assert!(missed.output.contains("at least 1000000000000: MISSED"), "{}", missed.output);
    assert!(missed.output.contains("at most 1000000000000: kept"), "{}", missed.output);
}

#[test]
fn a_synthetic_bench_times_steps_of_any_configuration() {
    let synthetic = ["bench", "--synthetic", "demo", "--device", "reference"];
    let sizes = ["--rows", "1,6x1,3", "--contexts", "64,200", "--prefill-tokens", "128"];
    // Standard error may tell of progress.
    let output = |more: &[&str]| {
        let finished = tandem(&[&synthetic[..], more].concat());
        assert_eq!(finished.code, 0, "{}", finished.errors);
        finished.output
    };
    let text = output(&[&sizes[..], &["--layers", "4"]].concat());
    assert!(text.contains(": 4 of 9 layers, n-gram tables of 1/64"), "{text}");
    for (step, rows, sequences, context) in [
        ("decode", 1, 1, 64),
        ("decode", 6, 1, 64),
        ("decode", 3, 3, 200),
        // Whole prompts where they are shorter, else the end of one.
        ("prefill", 128, 2, 64),
        ("prefill", 128, 1, 200),
    ] {
        let start = format!("{step:<8}{rows:>6} rows of {sequences:>4} at {context:>7}:");
        let found = text.lines().any(|line| line.starts_with(&start) && line.contains(" ms, "));
        assert!(found, "{start} in\n{text}");
    }
    // Without a number of layers there are as many as fit.
    let all = output(&["--rows", "1", "--contexts", "9", "--prefill-tokens", "9"]);
    assert!(all.contains(": 9 of 9 layers"), "{all}");
    tandem(&[&synthetic[..], &["--contexts", "64", "--layers", "10"]].concat())
        .refused(2, &["1 to 9"]);
    tandem(&[&synthetic[..], &["--contexts", "9999999"]].concat()).refused(2, &["--contexts"]);
    tandem(&[&synthetic[..], &["--model", "demo"]].concat()).refused(2, &["--model"]);
    tandem(&[&synthetic[..], &["-p", "4"]].concat()).refused(2, &["--n-prompt"]);
    tandem(&["bench", "--layers", "1"]).refused(2, &["--synthetic"]);
}
