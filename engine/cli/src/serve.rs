//! `tandem serve`: OpenAI's and Anthropic's protocols over HTTP.

use std::fs::read_to_string;
use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tandem_engine::serve::{ApiKeys, Server};
use tandem_engine::{Error, Result};

use crate::arguments::Common;
use crate::console;
use crate::limits::Limits;
use crate::served::Served;

/// Where and what to serve.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder of a checkpoint, as --model
    #[arg(value_name = "DIR|NAME", conflicts_with = "model")]
    checkpoint: Option<String>,
    /// Address to listen on; 0.0.0.0 for every one of this machine
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 for any that is free
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// What clients call the model; the folder's name if left out
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    served_model_name: Option<String>,
    /// A key that requests have to name, as "Authorization: Bearer KEY" or "x-api-key: KEY"; may be repeated; without keys
    /// whoever reaches the port is answered
    #[arg(long = "api-key", value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    api_keys: Vec<String>,
    /// A file of such keys, one a line
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<String>,
    /// Requests that may wait besides those that run; more are answered 429
    #[arg(
        long,
        visible_alias = "max-num-queued-reqs",
        value_name = "REQUESTS",
        default_value_t = 256
    )]
    max_queued_requests: u32,
    /// Longest body of a request in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    max_body_bytes: u32,
    /// Seconds that running requests may take to end after SIGTERM or SIGINT
    #[arg(long, visible_alias = "shutdown-timeout", value_name = "SECONDS", default_value_t = 30)]
    drain_timeout: u32,
    /// Sequences that run at once
    #[arg(long, value_name = "SEQUENCES", default_value_t = 8)]
    max_num_seqs: u64,
    /// Accepted: there is one prompt encoder
    #[arg(long, value_parser = BUILT_IN)]
    tokenizer_mode: Option<String>,
    /// Accepted: there is one parser of tool calls
    #[arg(long, value_parser = BUILT_IN)]
    tool_call_parser: Option<String>,
    /// Accepted: requests choose
    #[arg(long)]
    enable_auto_tool_choice: bool,
    /// Accepted: there is one parser of reasoning
    #[arg(long, value_parser = BUILT_IN)]
    reasoning_parser: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

/// What recipes name where we have no choice.
const BUILT_IN: [&str; 2] = ["deepseek_v41", "auto"];

/// Serves until SIGTERM or SIGINT, then lets running requests finish.
///
/// # Errors
/// An address that cannot be listened on, and whatever is wrong with the checkpoint or the devices.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    // Before the weights are read: a port in use is known at once.
    let (host, port) = (options.host.as_str(), options.port);
    let refuse = |problem: std::io::Error| Error::Argument {
        argument: "--host and --port".into(),
        problem: format!("cannot listen on {host}:{port}: {problem}; choose another"),
    };
    let api_keys = api_keys(options)?;
    let listener = TcpListener::bind((host, port)).map_err(refuse)?;
    let address = listener.local_addr().map_err(refuse)?;
    let model = options.checkpoint.clone().or_else(|| common.model.clone());
    let common = Common { model, ..common.clone() };
    let name = options.served_model_name.as_deref();
    let served = Served::load(&common, &options.limits, options.max_num_seqs, name)?;
    let Served { engine, model, options: mut server } = served;
    let name = &server.served_model_name;
    console::print(format_args!("serving {name} on http://{address}\n"))?;
    server.api_keys = api_keys;
    server.max_queued_requests = options.max_queued_requests;
    server.drain_timeout = Duration::from_secs(options.drain_timeout.into());
    server.body.bytes = options.max_body_bytes as usize;
    Server::new(engine, model, server).run_until_signal(listener)?;
    Ok(ExitCode::SUCCESS)
}

/// The keys that the options name and those of the file.
fn api_keys(options: &Options) -> Result<ApiKeys> {
    let text = match &options.api_key_file {
        Some(path) => read_to_string(path).map_err(|source| Error::Io {
            action: "read",
            path: path.clone(),
            source,
        })?,
        None => String::new(),
    };
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // A file that was emptied by mistake must not open the server to everyone.
    if let (Some(path), true) = (&options.api_key_file, lines.is_empty()) {
        let problem = format!("{path} holds no key; write one a line");
        return Err(Error::Argument { argument: "--api-key-file".into(), problem });
    }
    Ok(ApiKeys::new(lines.into_iter().chain(options.api_keys.iter().map(String::as_str))))
}
