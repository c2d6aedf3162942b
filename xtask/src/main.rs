//! Project chores.
//!
//! * `cargo xtask fetch tokenizer`: test data that is not ours to commit
//! * `cargo xtask fetch clients`: the Python clients that a test runs
//! * `cargo xtask fetch triton`: Triton's compiler, an oracle of the ROCm simulator's tests
//! * `cargo xtask toolkit cuda`: the compiler of the CUDA kernels
//! * `cargo xtask toolkit rocm`: the compiler of the AMD kernels
//! * `cargo xtask objects rocm`: the committed code objects, made anew from their sources
//! * `cargo xtask carry DIR [PART...]`: executables for a machine with a board
//! * `cargo xtask matrix RECORD...`: the records of conformance runs into the matrix

mod carry;
mod command;
mod fetch;
mod matrix;
mod objects;
mod toolkit;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["fetch", "tokenizer"] => fetch::tokenizer(),
        ["fetch", "clients"] => fetch::clients(),
        ["fetch", "triton"] => fetch::triton(),
        ["toolkit", "cuda"] => toolkit::cuda(),
        ["toolkit", "rocm"] => toolkit::rocm(),
        ["objects", "rocm"] => objects::rocm(),
        ["carry", folder, parts @ ..] => carry::carry(folder, parts),
        ["matrix", records @ ..] => matrix::matrix(records),
        _ => Err("usage: cargo xtask fetch tokenizer|clients|triton | toolkit cuda|rocm | objects rocm | carry DIR [PART...] | matrix RECORD...".to_owned()),
    };
    match outcome {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
