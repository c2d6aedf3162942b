//! The machine code of the committed objects: what loops must have and what they may not.
//!
//! A source says what it is made for, beside the code. A line `// loop gfx950: v_mfma_scale_f32_32x32x64_f8f6f4` names
//! instructions that a loop of each of its kernels has on that target, or of those named before the colon, a line
//! `// never gfx950: v_cvt_` how none in those loops begins there.

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

/// The innermost loops that have an instruction: the mnemonics between a branch backwards and where it goes.
fn loops_of<'a>(code: &'a Code, word: &str) -> Vec<Vec<&'a str>> {
    let back = code.iter().filter_map(|(at, _, to)| Some((to.filter(|to| to <= at)?, *at)));
    let has = |(from, to): &(u64, u64)| {
        code.iter().any(|(at, name, _)| from <= at && at <= to && name == word)
    };
    let loops: Vec<_> = back.filter(has).collect();
    let is_inner = |(from, to): &&(u64, u64)| !loops.iter().any(|(f, t)| f > from && t <= to);
    let names = |(from, to): &(u64, u64)| {
        let inside = code.iter().filter(|(at, ..)| from <= at && at <= to);
        inside.map(|(_, name, _)| name.as_str()).collect()
    };
    loops.iter().filter(is_inner).map(names).collect()
}

/// What a source says of a target: the kernels that it says it of, all if none, and the words behind the colon.
struct Line {
    kernels: Vec<String>,
    words: Vec<String>,
}

/// Lines `// KIND TARGET:` or `// KIND TARGET KERNEL...:` of a source.
fn lines(source: &str, kind: &str, target: &str) -> Vec<Line> {
    let begin = format!("// {kind} {target}");
    let rests = source.lines().filter_map(|line| line.strip_prefix(&begin)?.split_once(':'));
    let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    rests.map(|(kernels, words)| Line { kernels: list(kernels), words: list(words) }).collect()
}

/// What they say of a kernel.
fn words<'a>(lines: &'a [Line], kernel: &str) -> Vec<&'a str> {
    let of = |line: &&Line| line.kernels.is_empty() || line.kernels.iter().any(|k| k == kernel);
    lines.iter().filter(of).flat_map(|line| &line.words).map(String::as_str).collect()
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
            let (needed, banned) = (lines(&text, "loop", target), lines(&text, "never", target));
            let is_tuned = source.path.starts_with(workspace().join("kernels-rocm"));
            assert!(!is_tuned || !needed.is_empty(), "{} is made for nothing", source.name);
            if needed.is_empty() && banned.is_empty() {
                continue;
            }
            let object = workspace().join(OBJECTS).join(target).join(source.file());
            let kernels = disassemble(&tool, &object);
            let mut named = needed.iter().chain(&banned).flat_map(|line| &line.kernels);
            assert!(named.all(|name| kernels.contains_key(name)), "{}", source.name);
            for (kernel, code) in kernels {
                let banned = words(&banned, &kernel);
                for word in words(&needed, &kernel) {
                    let loops = loops_of(&code, word);
                    assert!(!loops.is_empty(), "{kernel} {target}: no loop has {word}");
                    let is_banned = |name: &&&str| banned.iter().any(|b| name.starts_with(b));
                    let found = loops.iter().flatten().find(is_banned);
                    assert_eq!(found, None, "{kernel} {target}: in the loop of {word}");
                }
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
    let product = "v_mfma_f32_32x32x16_fp8_fp8";
    assert_eq!(loops_of(&code, product), [[product, "s_cbranch_scc1"]]);
    assert!(loops_of(&code, "v_mov_b32_e32").is_empty());
}
