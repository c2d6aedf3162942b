//! `tandem doctor`: what this machine offers, and whether the built-in demo is whole.

use std::fs;
use std::process::ExitCode;

use tandem_engine::Result;
use tandem_engine::model::v41::names;
use tandem_engine::weights::Checkpoint;

use crate::arguments::Common;
use crate::model::Source;
use crate::{backends, console};

/// Prints the report.
///
/// # Errors
/// A checkpoint that is not whole; what was found before that has been printed.
pub(crate) fn run(common: &Common) -> Result<ExitCode> {
    let backends = backends::listed(common)?;
    say("tandem", env!("CARGO_PKG_VERSION"))?;
    say("host", &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))?;
    let cores = std::thread::available_parallelism();
    say("cores", &cores.map_or_else(|error| error.to_string(), |cores| cores.to_string()))?;
    say("memory", &memory())?;
    for backend in backends {
        match backend.devices {
            Err(error) => say(backend.provider.name(), &error.to_string())?,
            Ok(devices) => {
                for info in devices {
                    let size = gib(info.memory_bytes);
                    say(&info.name, &format!("{} ({}), {size}", info.board, info.arch))?;
                }
            }
        }
    }
    say("checkpoint", &checkpoint(common)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the checkpoint as the loader does and compares it with its configuration.
fn checkpoint(common: &Common) -> Result<String> {
    let source = Source::named(common.model.as_deref())?;
    let checkpoint = Checkpoint::open(&source.files)?;
    names::check(&source.config, &checkpoint)?;
    let tokenizer = source.tokenizer()?;
    let bytes: u64 = checkpoint.tensors().map(|tensor| tensor.length_bytes()).sum();
    Ok(format!(
        "{}: {} tensors in {} shards, {bytes} bytes, all as config.json says; {} token ids",
        source.name,
        checkpoint.tensor_count(),
        checkpoint.shards().count(),
        tokenizer.vocabulary_size(),
    ))
}

/// Memory of the host as Linux reports it.
fn memory() -> String {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    match (kib("MemTotal:"), kib("MemAvailable:")) {
        (Some(total), Some(available)) => {
            format!("{}, {} available", gib(total << 10), gib(available << 10))
        }
        _ => "unknown: this system has no /proc/meminfo".to_owned(),
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

fn say(key: &str, value: &str) -> Result<()> {
    console::print(format_args!("{key:<12}{value}\n"))
}
