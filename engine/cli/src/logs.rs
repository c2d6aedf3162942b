//! Where lines of the log go: to standard error, as text or as JSON.

use std::io::{IsTerminal, stderr};

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

/// What is logged and how.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LogOptions {
    /// How lines of the log are written: for people, or one object of JSON a line
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Format::Text)]
    log_format: Format,
    /// Least level of what is logged; every request has a line of level info, probes of level debug
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Info)]
    log_level: Level,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogOptions {
    /// Writes what is logged from now on.
    pub(crate) fn begin(self) {
        let level = match self.log_level {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        };
        let lines = tracing_subscriber::fmt().with_writer(stderr).with_max_level(level);
        let lines = lines.with_ansi(stderr().is_terminal());
        // Whoever began before, goes on.
        let _begun = match self.log_format {
            Format::Text => lines.with_target(false).try_init(),
            Format::Json => lines.json().flatten_event(true).try_init(),
        };
    }
}
