//! The binary from outside: help, refusals and their exit codes, plans, kernels, doctor.

mod tandem;

use std::fs;

use tandem::{Finished, tandem, tandem_with_library_path};

const COMMANDS: [&str; 8] =
    ["generate", "chat", "serve", "bench", "plan", "verify", "kernels", "doctor"];

/// Commands within others.
const INNER: [[&str; 2]; 4] =
    [["bench", "serve"], ["bench", "throughput"], ["bench", "latency"], ["bench", "tune"]];

/// What follows `tandem` or `chat`'s `--` in a line of the README's blocks of commands.
fn example(line: &str) -> Option<Vec<&str>> {
    let command = line.split(" #").next()?;
    let rest =
        command.strip_prefix("tandem ").or(command.strip_prefix("cargo run --release -- "))?;
    Some(rest.split_whitespace().collect())
}

#[test]
fn the_readme_shows_every_command_and_no_flag_that_does_not_exist() {
    let readme = include_str!("../../../README.md");
    let examples: Vec<_> = readme.lines().filter_map(example).collect();
    for command in COMMANDS {
        assert!(examples.iter().any(|words| words[0] == command), "{command} has an example");
    }
    let help = |command: &str| tandem(&[command, "--help"]).ok();
    let has = |text: &str, flag: &str| {
        text.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c))).any(|word| word == flag)
    };
    for words in &examples {
        let mut text = help(words[0]);
        if INNER.iter().any(|inner| words.starts_with(inner)) {
            text = tandem(&[words[0], words[1], "--help"]).ok();
        }
        for flag in words.iter().filter(|word| word.starts_with('-')) {
            assert!(has(&text, flag), "{flag} of {words:?} in\n{text}");
        }
    }
    // Flags in running text belong to some command.
    let all: String = COMMANDS.iter().map(|command| help(command)).collect();
    for flag in readme.split('`').filter_map(|code| code.split(' ').next()) {
        if flag.starts_with("--") {
            assert!(has(&all, flag), "{flag}");
        }
    }
}

#[test]
fn help_and_version_need_nothing() {
    let help = tandem(&["--help"]).ok();
    for command in COMMANDS {
        assert!(help.lines().any(|line| line.trim_start().starts_with(command)), "{command}");
        assert!(tandem(&[command, "--help"]).ok().contains("Usage: tandem"));
    }
    assert_eq!(tandem(&["--version"]).ok(), format!("tandem {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn mistakes_are_one_line_with_a_remedy_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    fs::write(&file, "{").unwrap();
    let (file, folder) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
    for (arguments, parts) in [
        (&["--modle", "x"][..], &["--modle", "did you mean '--model'?"][..]),
        (&["plam"], &["plam", "did you mean 'plan'?"]),
        (&[], &["no command", "tandem --help"]),
        (&["plan", "--device"], &["--device", "value is required"]),
        (&["plan", "--device", "tpu"], &["--device", "tpu", "nvidia-h200"]),
        (&["plan", "--max-num-seqs", "8"], &["--device", "nvidia-h200x8"]),
        (&["plan", "--max-num-seqs", "x", "--device", "h200"], &["--max-num-seqs", "'x'"]),
        (&["plan", "--model", "/no/such"], &["--model", "/no/such", "v4.1-flash"]),
        (&["plan", "--model", file], &["config.json", "not JSON"]),
        (&["plan", "--model", "a\nb"], &["a\\nb"]),
        (
            &["plan", "--device", "h200", "--engram-config", "{}"],
            &["--engram-config", "cpu_offload"],
        ),
        (&["doctor", "--model", "v4.1-flash"], &["v4.1-flash", "without weights"]),
        (&["doctor", "--model", folder], &["config.json", "not JSON"]),
        (&["doctor", "--model", "/no/such"], &["--model", "/no/such", "demo"]),
        (&["doctor", "--threads", "0"], &["--threads", "1..=1024"]),
        (&["kernels", "--device", "reference:1,1"], &["--device", "named twice"]),
        (&["kernels", "--kernel", "gemm.mxfp8"], &["--kernel", "OPERATOR=ROW"]),
        (&["kernels", "--kernel", "gemm.no=x"], &["gemm.no", "tandem kernels"]),
        (&["kernels", "--kernel", "gemm.mxfp8=x"], &["gemm.mxfp8", "\"x\"", "scalar"]),
        (&["kernels", "nothing"], &["\"nothing\"", "leave it out"]),
    ] {
        tandem(arguments).refused(2, parts);
    }
}

#[test]
fn the_production_plan_has_every_published_line() {
    let text = tandem(&["plan", "--model", "v4.1-flash", "--device", "nvidia-h200x8"]).ok();
    for (label, numbers) in [
        ("backbone routed experts", "271,790,899,200 16,986,931,200 253.125"),
        ("DSpark routed experts", "6,794,772,480 424,673,280 6.328"),
        ("Engram tables", "196,613,849,600 6,144,182,800 183.111"),
        ("Engram wkv", "314,572,800 307,200 0.293"),
        ("Engram q_weight, k_weight", "163,840 0.000"),
        ("attn wq_a", "262,144,000 256,000 0.244"),
        ("attn wq_b", "1,677,721,600 1,638,400 1.563"),
        ("attn wkv", "104,857,600 102,400 0.098"),
        ("attn wo_a", "1,342,177,280 1,310,720 1.250"),
        ("attn wo_b", "1,677,721,600 1,638,400 1.563"),
        ("shared experts", "1,415,577,600 1,382,400 1.318"),
        ("indexer wq_b", "41,943,040 40,960 0.039"),
        ("indexer weights_proj", "2,621,440 0.002"),
        ("indexer wk", "524,288 0.000"),
        ("indexer k_norm", "1,024 0.000"),
        ("compressor wkv", "20,971,520 0.020"),
        ("compressor wgate", "15,728,640 0.015"),
        ("compressor norm", "4,096 0.000"),
        ("router gate.weight", "157,286,400 0.146"),
        ("router biases", "122,880 0.000"),
        ("mHC tensors", "157,295,040 0.146"),
        ("attention sinks", "10,240 0.000"),
        ("layer norms (attn, ffn, q, kv)", "962,560 0.001"),
        ("embed", "1,323,827,200 1.233"),
        ("head", "1,323,827,200 1.233"),
        ("final norm", "10,240 0.000"),
        ("DSpark non-expert tensors", "713,428,872 0.664"),
        ("vision", "970,536,960 0.904"),
        ("total", "96,085 510,286,023,000"),
        ("backbone", "552,366,103,664 552.37"),
        ("Engram tables", "196,613,849,600 196.61"),
        ("active per prompt token", "7,895,580,472 7.90"),
        ("active per output token", "16,130,606,192 16.13"),
    ] {
        let has = |line: &str, number| line.split_whitespace().any(|word| word == number);
        let found = text.lines().map(str::trim_start).any(|line| {
            line.starts_with(label) && numbers.split_whitespace().all(|number| has(line, number))
        });
        assert!(found, "{label}: {numbers} in\n{text}");
    }
    assert!(text.contains("total 510,286,023,000 B = 475.241 GiB"));
    assert!(text.contains("fits: "));
}

#[test]
fn c099_a_plan_that_does_not_fit_says_so_and_exits_with_3() {
    let Finished { code, output, errors } =
        tandem(&["plan", "--model", "v4.1-flash", "--device", "h200x2", "--tp", "2"]);
    assert_eq!((code, errors.as_str()), (3, ""));
    let verdict = output.lines().last().unwrap();
    assert!(verdict.starts_with("does not fit: "), "{verdict}");
    assert!(verdict.contains(" short; what fits: tensor parallel 4"), "{verdict}");
}

#[test]
fn a_plan_reads_a_folder_a_file_or_a_name_and_no_weight() {
    let folder = tempfile::tempdir().unwrap();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/config.json");
    fs::copy(config, folder.path().join("config.json")).unwrap();
    let demo = tandem(&["plan"]).ok();
    assert!(demo.contains("amd-mi355x (gfx950)") && demo.contains("total 21,191,028 B"), "{demo}");
    for model in [folder.path().to_str().unwrap(), config, "demo"] {
        assert_eq!(tandem(&["plan", "--model", model]).ok(), demo);
    }
}

#[test]
fn every_operator_is_listed_with_the_row_that_runs() {
    let text = tandem(&["kernels", "--device", "reference"]).ok();
    for id in tandem_hal::Op::IDS {
        let listed = text.lines().any(|line| line.trim_start().split(',').next() == Some(*id));
        assert!(listed, "{id} in\n{text}");
    }
    let legend = text.lines().nth(1).unwrap();
    for mark in ["rows best first", "RowInvariant: ", "bits: "] {
        assert!(legend.contains(mark), "{mark} in {legend}");
    }
    assert!(text.contains("\n  attn.mla_absorbed, reference only, not used by this model\n"));
    assert!(text.contains("\n  gemm.mxfp8\n    gemm.mxfp8{n=64,k=256} up to 256 rows\n"), "{text}");
    let text = tandem(&["kernels", "moe.expert_up", "--model", "v4.1-flash"]).ok();
    assert!(text.contains("{total=384,first=0,local=384,top_k=6,hidden=5120"), "{text}");
    let forced = ["kernels", "gemm.mxfp8", "--kernel", "gemm.mxfp8=scalar"];
    let text = tandem(&forced).ok();
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(row("scalar").contains(": runs, "), "{text}");
    assert!(row("blocked").contains("refused: overridden by scalar"), "{text}");
}

#[test]
fn c096_without_a_driver_the_reference_works_and_the_list_says_what_is_missing() {
    let empty = tempfile::tempdir().unwrap();
    let text = tandem_with_library_path(&["doctor"], empty.path()).ok();
    for name in ["cuda", "rocm"] {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(&format!("no device {name}: ")), "{line}");
        assert!(line.ends_with("use --device reference"), "{line}");
    }
    assert!(text.lines().any(|line| line.starts_with("reference  ")), "{text}");
    // A driver that would not load is found and not touched.
    fs::write(empty.path().join("libcuda.so.1"), b"no library").unwrap();
    fs::write(empty.path().join("libamdhip64.so"), b"no library").unwrap();
    for arguments in [&["doctor"][..], &["kernels", "gemm"], &["--version"], &["plan"]] {
        tandem_with_library_path(arguments, empty.path()).ok();
    }
    let text = tandem_with_library_path(&["doctor"], empty.path()).ok();
    assert!(text.contains(&format!("{}/libcuda.so.1", empty.path().display())), "{text}");
    tandem(&["kernels", "--device", "cuda:0"]).refused(5, &["no device cuda:0"]);
}

/// A library that calls itself a driver of this version and has nothing else.
fn fake_driver(folder: &std::path::Path, version: Option<i32>) {
    let source = folder.join("driver.c");
    let body = version.map_or_else(
        || "int nothing;".to_owned(),
        |version| format!("int cuDriverGetVersion(int *v) {{ *v = {version}; return 0; }}"),
    );
    fs::write(&source, body).unwrap();
    let library = folder.join("libcuda.so.1");
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.is_ok_and(|status| status.success()), "a C compiler builds the library");
}

#[test]
fn c096_a_driver_that_is_too_old_or_not_whole_is_named() {
    for (version, complaint) in [
        (Some(12_040), "supports CUDA 12.4, 13.0 is needed: update the driver"),
        (Some(13_000), "has no cu"),
        (None, "has no cu"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fake_driver(folder.path(), version);
        let text = tandem_with_library_path(&["doctor"], folder.path()).ok();
        let line = text.lines().find(|line| line.starts_with("cuda")).unwrap();
        assert!(line.contains(complaint), "{line}");
        assert!(line.ends_with("use --device reference"), "{line}");
    }
}
