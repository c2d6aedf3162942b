//! Project chores: `cargo xtask fetch tokenizer`, `cargo xtask toolkit cuda`, `cargo xtask matrix RECORD...`.

mod command;
mod fetch;
mod matrix;
mod toolkit;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["fetch", "tokenizer"] => fetch::tokenizer(),
        ["toolkit", "cuda"] => toolkit::cuda(),
        ["matrix", records @ ..] => matrix::matrix(records),
        _ => Err("usage: cargo xtask fetch tokenizer | toolkit cuda | matrix RECORD...".to_owned()),
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
