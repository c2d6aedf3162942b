//! Project chores: `cargo xtask fetch tokenizer`, `cargo xtask toolkit cuda`.

mod command;
mod fetch;
mod toolkit;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["fetch", "tokenizer"] => fetch::tokenizer(),
        ["toolkit", "cuda"] => toolkit::cuda(),
        _ => Err("usage: cargo xtask fetch tokenizer | toolkit cuda".to_owned()),
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
