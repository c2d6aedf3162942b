//! The `tandem` binary: links the backends, parses arguments, runs one subcommand.

mod answer;
mod arguments;
mod backends;
mod batch;
mod bench;
mod chat;
mod console;
mod demo;
mod doctor;
mod drafting;
mod embed;
mod generate;
mod interrupt;
mod kernels;
mod limits;
mod load;
mod logs;
mod model;
mod pictures;
mod plan;
mod prefix_folder;
mod progress;
mod ready;
mod rehearsal;
mod requests;
mod sampling;
mod serve;
mod served;
mod settings;
mod synthetic;
mod transcript;
mod verify;

use std::process::ExitCode;
use std::time::Instant;

use arguments::{Arguments, Task};
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

fn run(Arguments { common, task }: &Arguments, started: Instant) -> Result<ExitCode> {
    match task {
        Task::Generate(options) => generate::run(common, options),
        Task::Embed(options) => embed::run(common, options),
        Task::Chat(options) => chat::run(common, options),
        Task::Serve(options) => serve::run(common, options),
        Task::Bench(options) => bench::run(common, options, started),
        Task::Plan(options) => plan::run(common, options),
        Task::Verify(options) => verify::run(common, options),
        Task::Kernels(options) => kernels::run(common, options),
        Task::Doctor => doctor::run(common),
    }
}
