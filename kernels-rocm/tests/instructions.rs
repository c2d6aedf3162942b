//! The machine code of the committed objects: what loops must have and what they may not.
//!
//! A source says what it is made for, beside the code. A line `// loop gfx950: v_mfma_scale_f32_32x32x64_f8f6f4` names
//! instructions that a loop of each of its kernels has on that target, a line `// never gfx950: v_cvt_` how none in their
//! loops begins there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tandem_rocm_toolchain::{Compiler, OBJECTS, Source};

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A kernel's instructions: address, mnemonic, and where a branch goes.
type Code = Vec<(u64, String, Option<u64>)>;

/// Kernels by name.
fn disassemble(tool: &Path, object: &Path) -> BTreeMap<String, Code> {
    let output = Command::new(tool).arg("-d").arg(object).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut kernels: BTreeMap<String, Code> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(label) = line.strip_suffix(">:").and_then(|line| line.split_once('<')) {
            name = label.1.into();
        } else if let Some(instruction) = instruction(line) {
            kernels.entry(name.clone()).or_default().push(instruction);
        }
    }
    kernels
}

/// A line: the instruction, then `// 0000000019A8: BF85FFFA <kernel+0x44>`, its address and its words.
fn instruction(line: &str) -> Option<(u64, String, Option<u64>)> {
    let (text, comment) = line.split_once("//")?;
    let (address, encoding) = comment.trim().split_once(':')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let mnemonic = text.split_whitespace().next()?;
    let is_branch = mnemonic.starts_with("s_cbranch") || mnemonic == "s_branch";
    let target = is_branch.then(|| {
        let word = encoding.split_whitespace().next().expect("an encoding");
        let word = u32::from_str_radix(word, 16).expect("a word");
        (address + 4).wrapping_add_signed(4 * i64::from(word as i16))
    });
    Some((address, mnemonic.into(), target))
}

/// Instructions between a branch backwards and where it goes.
fn in_loops(code: &Code) -> Vec<&str> {
    let back = code.iter().filter_map(|(at, _, to)| Some((to.filter(|to| to <= at)?, *at)));
    let loops: Vec<_> = back.collect();
    let inside = |at: &u64| loops.iter().any(|(from, to)| from <= at && at <= to);
    code.iter().filter(|(at, ..)| inside(at)).map(|(_, name, _)| name.as_str()).collect()
}

/// Words behind lines `// KIND TARGET:` of a source.
fn words(source: &str, kind: &str, target: &str) -> Vec<String> {
    let begin = format!("// {kind} {target}:");
    let lines = source.lines().filter_map(|line| line.trim_start().strip_prefix(&begin));
    lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

fn tool() -> Option<PathBuf> {
    let found = Compiler::find(workspace()).map(|compiler| compiler.beside("llvm-objdump"));
    match found {
        Ok(Some(tool)) => Some(tool),
        Ok(None) => {
            println!("SKIPPED rocm: no llvm-objdump beside the compiler");
            None
        }
        Err(why) => {
            println!("SKIPPED rocm: {why}");
            None
        }
    }
}

#[test]
fn loops_have_what_their_sources_name() {
    let Some(tool) = tool() else { return };
    let mut checked = 0;
    for source in Source::all(workspace()).unwrap() {
        let text = fs::read_to_string(&source.path).unwrap();
        for target in source.targets() {
            let (needed, banned) = (words(&text, "loop", target), words(&text, "never", target));
            let is_tuned = source.path.starts_with(workspace().join("kernels-rocm"));
            assert!(!is_tuned || !needed.is_empty(), "{} is made for nothing", source.name);
            if needed.is_empty() && banned.is_empty() {
                continue;
            }
            let object = workspace().join(OBJECTS).join(target).join(source.file());
            for (kernel, code) in disassemble(&tool, &object) {
                let inside = in_loops(&code);
                for word in &needed {
                    assert!(inside.contains(&word.as_str()), "{kernel} {target}: no {word}");
                }
                let is_banned = |name: &&&str| banned.iter().any(|b| name.starts_with(b.as_str()));
                assert_eq!(inside.iter().find(is_banned), None, "{kernel} {target}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 4, "{checked} kernels");
}

#[test]
fn a_loop_is_what_a_branch_goes_back_over() {
    let lines = [
        "\tv_mov_b32_e32 v0, 0        // 000000000100: 7E000280",
        "\tv_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[0:1], v[2:3], 0 // 000000000104: D3F68000 02020500",
        "\ts_cbranch_scc1 65533        // 00000000010C: BF85FFFD <kernel+0x4>",
        "\ts_branch 1                  // 000000000110: BF820001 <kernel+0x18>",
        "0000000000000100 <kernel>:",
    ];
    let code: Code = lines.iter().filter_map(|line| instruction(line)).collect();
    assert_eq!(code.len(), 4);
    assert_eq!((code[2].2, code[3].2), (Some(0x104), Some(0x118)));
    assert_eq!(in_loops(&code), ["v_mfma_f32_32x32x16_fp8_fp8", "s_cbranch_scc1"]);
}
