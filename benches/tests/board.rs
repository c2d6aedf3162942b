//! The program `board` on the reference device.

use std::process::Command;

#[test]
fn the_board_measures_compares_and_writes_json() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("figures.json");
    let output = Command::new(env!("CARGO_BIN_EXE_board"))
        .args(["gemm.mxfp8", "n=512,k=5120", "{tokens=1}", "--device", "reference", "--json"])
        .arg(&json)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2, "a scalar and a blocked row: {text}");
    for case in cases {
        assert_eq!(case["operator"], "gemm.mxfp8");
        assert_eq!(case["agreeing_rows"], 1);
        assert!(case["us"].as_f64().unwrap() > 0.0);
        assert!(case["p10_us"].as_f64() <= case["p90_us"].as_f64());
    }
}

#[test]
fn what_cannot_be_measured_is_said_and_fails() {
    let board = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_board")).args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let skipped = board(&["gemm.mxfp8", "n=32768", "{tokens=8192}", "--device", "reference"]);
    assert!(skipped.contains("SKIPPED gemm.mxfp8{n=32768"), "{skipped}");
    assert!(board(&["--device", "abacus"]).contains("providers are cuda, rocm and reference"));
}
