//! The `tandem` binary: links the backends, parses arguments, runs one subcommand.

mod answer;
mod arguments;
mod backends;
mod bench;
mod chat;
mod console;
mod demo;
mod doctor;
mod generate;
mod interrupt;
mod kernels;
mod limits;
mod model;
mod pictures;
mod plan;
mod progress;
mod ready;
mod rehearsal;
mod sampling;
mod serve;
mod synthetic;
mod transcript;
mod verify;

use std::process::ExitCode;
use std::time::Instant;

use arguments::{Arguments, Command};
use tandem_engine::Result;

fn main() -> ExitCode {
    let started = Instant::now();
    let arguments = match arguments::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(&arguments, started) {
        Ok(code) => code,
        Err(error) => console::report(&error),
    }
}

fn run(Arguments { common, command }: &Arguments, started: Instant) -> Result<ExitCode> {
    match command {
        Command::Generate(options) => generate::run(common, options),
        Command::Chat(options) => chat::run(common, options),
        Command::Serve(options) => serve::run(common, options),
        Command::Bench(options) => bench::run(common, options, started),
        Command::Plan(options) => plan::run(common, options),
        Command::Verify(options) => verify::run(common, options),
        Command::Kernels(options) => kernels::run(common, options),
        Command::Doctor => doctor::run(common),
    }
}
