//! Arguments and streams with one thing wrong: each command says what in one line, exit code 2, and
//! writes nothing.

mod tandem;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use tandem::{Finished, finish, finished, tandem, tandem_with_input};

const GOLDENS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens");

/// Every command, with what it needs at least.
const COMMANDS: [&[&str]; 8] = [
    &["generate", "Call me"],
    &["chat"],
    &["serve", "--port", "0"],
    &["bench"],
    &["verify", "--goldens", GOLDENS],
    &["plan"],
    &["kernels"],
    &["doctor"],
];

/// One line that has `parts`, exit code 2, and no output.
#[track_caller]
fn refused(finished: Finished, parts: &[&str]) {
    assert_eq!(finished.output, "");
    finished.refused(2, parts);
}

#[test]
fn every_command_refuses_flags_devices_and_models_that_do_not_exist() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    for command in COMMANDS {
        let with = |arguments: &[&str]| tandem(&[command, arguments].concat());
        refused(with(&["--nonsense"]), &["'--nonsense'", "--help"]);
        refused(with(&["--threads", "-1"]), &["'-1'", "--threads"]);
        refused(with(&["--kernel", "gemm"]), &["--kernel", "OPERATOR=ROW"]);
        refused(with(&["--model"]), &["--model", "value is required"]);
        for device in ["tpu", "", "reference:", "reference:0,0", "reference:x", "reference:-1"] {
            refused(with(&["--device", device]), &["--device: "]);
        }
        // What the doctor finds out about the machine is worth its lines.
        let no_model = |finished: Finished, parts: &[&str]| match command[0] {
            "doctor" => finished.refused(2, parts),
            _ => refused(finished, parts),
        };
        no_model(with(&["--model", "/no/such"]), &["--model", "/no/such", "demo"]);
        no_model(with(&["--model", ""]), &["--model", "demo"]);
        no_model(with(&["--model", empty]), &["config.json", "check the path"]);
    }
}

#[test]
fn a_backend_without_devices_is_no_mistake_of_the_caller() {
    for command in &COMMANDS[..5] {
        for backend in ["cuda", "rocm:all", "cuda:0,1"] {
            let finished = tandem(&[command, &["--device", backend][..]].concat());
            assert_eq!(finished.output, "");
            finished.refused(5, &["no device", "use --device reference"]);
        }
    }
    for backend in ["cuda", "rocm", "reference"] {
        refused(tandem(&["plan", "--device", backend]), &["--device: ", backend, "nvidia-h200"]);
    }
}

#[test]
fn an_argument_that_is_not_utf_8_is_shown() {
    for arguments in [&["generate"][..], &["chat", "--system-prompt"], &["kernels"], &["serve"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        command.args(arguments).arg(OsStr::from_bytes(b"wh\xffle"));
        refused(finish(&mut command), &["argument \"wh\u{fffd}le\" is not UTF-8", "convert it"]);
    }
}

#[test]
fn input_that_is_not_utf_8_is_refused() {
    let input = b"\xff\n";
    refused(tandem_with_input(&["chat"], input), &["standard input: ", "not UTF-8", "convert it"]);
    let finished = tandem_with_input(&["generate", "-f", "-"], input);
    refused(finished, &["-: ", "not UTF-8 from byte 0", "convert it"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), b"good \xff bad").unwrap();
    let path = file.path().to_str().unwrap();
    refused(tandem(&["generate", "-f", path]), &[path, "not UTF-8 from byte 5", "convert it"]);
}

/// None is waited for, and none is the machine's fault.
#[test]
fn paths_that_are_no_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (pipe, link, long) = (path("pipe"), path("link"), path(&"n".repeat(5000)));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("link", &link).unwrap();
    for (flags, instead) in [
        (&["generate", "Call", "--image"][..], "give a PNG or JPEG file"),
        (&["generate", "--file"], "or - for standard input"),
    ] {
        for (path, parts) in [
            (&*pipe, &[": not a regular file; ", instead][..]),
            ("/dev/zero", &[": not a regular file; ", instead]),
            (&link, &[": a link that cannot be followed", "put the file itself in its place"]),
            (&long, &["; check the path"]),
            ("/proc/self/mem", &["; give another file"]),
        ] {
            refused(tandem(&[flags, &[path]].concat()), parts);
        }
    }
    for (path, part) in [(pipe, "; give a PNG"), (link, "; put the file"), (long, "; check")] {
        let chat = tandem_with_input(&["chat"], format!("/image {path}\n").as_bytes());
        refused(chat, &[part]);
    }
}

#[test]
fn numbers_out_of_range_name_their_flag() {
    const HUGE: &str = "99999999999999999999";
    for command in ["generate Call", "chat"].map(|words| words.split(' ').collect::<Vec<_>>()) {
        for (flag, values) in [
            ("--max-tokens", &["0", "-1", HUGE, "1.5", "x", ""][..]),
            ("--temperature", &["nan", "inf", "-1", "1e39", "x"]),
            ("--top-p", &["0", "1.1", "nan", "-1"]),
            ("--top-k", &["-2", HUGE]),
            ("--min-p", &["-0.1", "2", "nan"]),
            ("--seed", &["-1", HUGE]),
        ] {
            for value in values {
                let flags = [command.clone(), vec![flag, value]].concat();
                // A range that requests share is named as their field.
                let name = flag.trim_start_matches('-').split('-').next().unwrap();
                refused(tandem(&flags), &[name]);
            }
        }
    }
    for (arguments, parts) in [
        (&["bench", "-p", "0"][..], &["--n-prompt"][..]),
        (&["bench", "-p", HUGE], &["--n-prompt"]),
        (&["bench", "-p", "99999999999"], &["--n-prompt and --n-gen", "65536", "give fewer"]),
        (&["bench", "-n", "18446744073709551615"], &["--n-prompt and --n-gen", "65536"]),
        (&["bench", "-n", "1"], &["--n-gen", "2 to generate"]),
        (&["bench", "-r", "0"], &["--repetitions"]),
        (&["bench", "--min-decode", "nan"], &["--min-decode", "give a number"]),
        (&["bench", "--max-ready", "-1"], &["--max-ready", "give a number"]),
        (&["serve", "--port", "65536"], &["--port"]),
        (&["serve", "--port", "-1"], &["--port"]),
        (&["serve", "--port", "0", "--max-num-seqs", "0"], &["--max-num-seqs", "1 to 65536"]),
        (&["serve", "--port", "0", "--max-num-seqs", "99999"], &["--max-num-seqs", "1 to 65536"]),
        (&["serve", "--served-model-name", ""], &["--served-model-name"]),
        (&["serve", "--host", "no such host"], &["--host", "no such host", "choose another"]),
        (&["generate", "Call", "--stop", ""], &["--stop"]),
        (&["generate", "Call", "-c", "1"], &["--max-model-len", "2 to 65536"]),
        (&["generate", "Call", "-c", "65537"], &["--max-model-len", "2 to 65536"]),
        (&["generate", "Call me Ishmael", "-c", "2"], &["prompt: ", "holds 2; shorten it"]),
        (&["generate", "Call", "--draft-max", "-1"], &["-1", "0 to 5"]),
        (&["generate", "Call", "--gpu-memory-utilization", "nan"], &["--gpu-memory-utilization"]),
        (&["verify"], &["--goldens"]),
        (&["verify", "--goldens", "/no/such"], &["/no/such", "check the path"]),
        (&["verify", "--goldens", env!("CARGO_MANIFEST_DIR")], &["--goldens", "golden files"]),
        (&["verify", "--goldens", GOLDENS, "--device", "reference:0,1"], &["one device"]),
        (&["plan", "--device", "h200", "--max-model-len", "0"], &["--max-model-len", "1 to"]),
        (&["plan", "--device", "h200", "--max-num-seqs", "-1"], &["--max-num-seqs", "'-1'"]),
        (&["plan", "--device", "h200x9999"], &["--device", "9999", "1 to 1024"]),
    ] {
        refused(tandem(arguments), parts);
    }
}

#[test]
fn a_text_that_is_surely_too_long_is_refused_uncounted() {
    let text = "whale ".repeat(1 << 20);
    let refusal = tandem_with_input(&["generate", "-f", "-"], text.as_bytes());
    refused(refusal, &["prompt: at least 419432 tokens", "65536; shorten it"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    for arguments in [
        &["generate", "Call me", "-n", "60000", "--ignore-eos"][..],
        &["bench", "-p", "1", "-n", "2", "-r", "1"],
        &["plan"],
        &["kernels"],
        &["doctor"],
        &["--help"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tandem"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        drop(output);
        finished(child.wait_with_output().unwrap()).ok();
    }
}

#[test]
fn errors_need_no_reader() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    let status = command.args(["generate", "Call", "--nonsense"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    for arguments in [&["generate", "Call me", "-n", "4"][..], &["plan"], &["doctor"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command.args(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{errors}");
        assert!(errors.contains("error: cannot write standard output: "), "{errors}");
    }
}

#[test]
fn nothing_is_written_where_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["generate", "Call me", "-n", "2"][..], &["generate", "x", "-c", "1"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        finish(command.args(arguments).current_dir(folder.path()));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
