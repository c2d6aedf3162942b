//! The `tandem` binary: links the backends, parses arguments, runs one subcommand.

mod arguments;
mod backends;
mod console;
mod demo;
mod doctor;
mod kernels;
mod model;
mod plan;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use tandem_engine::Result;

fn main() -> ExitCode {
    let arguments = match arguments::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => console::report(&error),
    }
}

fn run(Arguments { common, command }: &Arguments) -> Result<ExitCode> {
    match command {
        Command::Plan(options) => plan::run(common, options),
        Command::Kernels(options) => kernels::run(common, options),
        Command::Doctor => doctor::run(common),
    }
}
