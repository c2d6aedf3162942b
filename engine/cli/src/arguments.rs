//! The command line, in the spelling of the servers its users know.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::console;
use crate::settings::Settings;

/// DeepSeek-V4.1 on NVIDIA, AMD or none: one kernel contract, one engine.
#[derive(Debug, Parser)]
#[command(name = "tandem", version, disable_help_subcommand = true)]
#[command(
    after_help = "Every option may stand in the environment as TANDEM_ and its name, such as \
    TANDEM_MAX_NUM_SEQS, or in the file of --config"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// Options of every subcommand.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Common {
    /// Folder of a checkpoint; the built-in demo checkpoint if left out
    #[arg(short, long, global = true, value_name = "DIR|NAME")]
    pub(crate) model: Option<String>,
    /// Devices: reference, reference:0,1 (two ranks), cuda:0, rocm:all; the first backend with
    /// devices if left out, or the next where one lacks an operator. For plan: boards, such as nvidia-h200x8
    #[arg(long, global = true, value_name = "DEVICES")]
    pub(crate) device: Option<String>,
    /// Take this kernel row for an operator, whatever its rank; may be repeated
    #[arg(long = "kernel", global = true, value_name = "OPERATOR=ROW", value_parser = operator_row)]
    pub(crate) kernels: Vec<(String, String)>,
    /// Threads of the reference device; as many as there are cores if left out
    #[arg(short, long, global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Options from a file of TOML, such as max-num-seqs = 16; the command line and the environment go before it
    #[arg(long, global = true, value_name = "FILE", env = "TANDEM_CONFIG", hide_env = true)]
    pub(crate) config: Option<String>,
    /// Print the options that hold, and where each is from, as a file for --config; and do nothing else
    #[arg(long, global = true)]
    pub(crate) print_config: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Continue a text
    Generate(crate::generate::Options),
    /// Turn texts into vectors of unit length
    Embed(crate::embed::Options),
    /// Talk with the model on the terminal
    Chat(crate::chat::Options),
    /// Answer requests of OpenAI's and Anthropic's protocols over HTTP
    Serve(crate::serve::Options),
    /// Measure prefill, decode, time to ready and memory
    Bench(crate::bench::Options),
    /// Say what fits, byte by byte, before reading any weight
    Plan(crate::plan::Options),
    /// Compare a device with golden files, layer by layer
    Verify(crate::verify::Options),
    /// List every operator's kernel rows and which one runs, per device
    Kernels(crate::kernels::Options),
    /// Say what this machine offers and whether the built-in demo is whole
    Doctor,
}

fn operator_row(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((operator, row)) if !operator.is_empty() && !row.is_empty() => {
            Ok((operator.to_owned(), row.to_owned()))
        }
        _ => Err("write OPERATOR=ROW, such as gemm.mxfp8=scalar".to_owned()),
    }
}

/// Parses the command line, with what the environment and a file say besides.
///
/// # Errors
/// The exit code when there is nothing to run: 0 after help, version and the settings that hold, 2
/// after a mistake, each of which has been printed.
pub(crate) fn parse() -> Result<Arguments, ExitCode> {
    let none = Settings::default();
    let first = command(&none);
    let given = first.clone().try_get_matches().map_err(|error| stopped(&error, &none))?;
    let settings = Settings::read(&first, &given).map_err(|problem| {
        console::complain(&problem);
        ExitCode::from(2)
    })?;
    let settled = command(&settings);
    let matches = settled.clone().try_get_matches();
    let matches = matches.map_err(|error| stopped(&error, &settings))?;
    let arguments = Arguments::from_arg_matches(&matches);
    let arguments = arguments.map_err(|error| stopped(&error, &settings))?;
    if arguments.common.print_config {
        let printed = console::print(settings.print(&settled, &matches));
        return Err(printed.map_or_else(|error| console::report(&error), |()| ExitCode::SUCCESS));
    }
    Ok(arguments)
}

/// The definition of the command line, with these settings.
fn command(settings: &Settings) -> Command {
    let settle = |arg| settings.apply(numeric(arg));
    let inner = |c: Command| c.mut_args(settle);
    Arguments::command().mut_args(settle).mut_subcommands(|c| inner(c).mut_subcommands(inner))
}

/// Prints why the parser stopped; the exit code for it.
fn stopped(error: &clap::Error, settings: &Settings) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that has gone away does not want the rest.
            let _written = error.print();
            ExitCode::SUCCESS
        }
        _ => {
            console::complain(&in_one_line(error, settings));
            ExitCode::from(2)
        }
    }
}

/// Reads `-1` as a value that is out of range, not as an option that does not exist.
fn numeric(argument: Arg) -> Arg {
    let takes_values = argument.get_action().takes_values();
    argument.allow_negative_numbers(takes_values)
}

/// The parser's message in one line: what is wrong, what was perhaps meant, where to look.
fn in_one_line(error: &clap::Error, settings: &Settings) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        || error.kind() == ErrorKind::MissingSubcommand
    {
        return "no command given; try 'tandem chat', or see 'tandem --help'".to_owned();
    }
    if error.kind() == ErrorKind::InvalidUtf8 {
        let unreadable = std::env::args_os().find(|argument| argument.to_str().is_none());
        let shown = unreadable.unwrap_or_default();
        let shown = shown.to_string_lossy();
        return format!("argument {shown:?} is not UTF-8; convert it to UTF-8");
    }
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default();
    let message = message.trim().strip_prefix("error: ").unwrap_or(message);
    let words: Vec<_> = message.split_whitespace().collect();
    let mut line = words.join(" ");
    if let (Some(ContextValue::String(arg)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    {
        let long = arg.split(' ').next().unwrap_or_default().trim_start_matches('-');
        if let Some(origin) = settings.origin(long, value) {
            line = format!("{origin}: {line}");
        }
    }
    let meant = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand].into_iter();
    for value in meant.filter_map(|kind| error.get(kind)) {
        let names = match value {
            ContextValue::String(name) => name.clone(),
            ContextValue::Strings(names) => names.join("' or '"),
            _ => continue,
        };
        line.push_str(&format!("; did you mean '{names}'?"));
    }
    line.push_str("; see 'tandem --help' and 'tandem COMMAND --help'");
    line
}
