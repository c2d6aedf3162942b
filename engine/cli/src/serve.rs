//! `tandem serve`: OpenAI's and Anthropic's protocols over HTTP.

use std::fs::read_to_string;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, value_parser};
use tandem_engine::serve::{ApiKeys, Server, Tls};
use tandem_engine::{Error, Result};

use crate::arguments::Common;
use crate::console;
use crate::limits::Limits;
use crate::logs::LogOptions;
use crate::prefix_folder::PrefixFolder;
use crate::served::{Loading, Served};

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
    /// Certificate of the server, a file of PEM with those behind it after it; connections are encrypted then. It and its
    /// key are read again at every SIGHUP
    #[arg(long, visible_alias = "ssl-certfile", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<String>,
    /// Its private key, a file of PEM
    #[arg(long, visible_alias = "ssl-keyfile", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<String>,
    /// Requests that may wait besides those that run; more are answered 429
    #[arg(
        long,
        visible_alias = "max-num-queued-reqs",
        value_name = "REQUESTS",
        default_value_t = 256
    )]
    max_queued_requests: u32,
    /// Tokens that the prompts of requests may have in all until their prefill begins; more are answered 429. A longer
    /// prompt waits alone
    #[arg(long, value_name = "TOKENS", default_value_t = 8 << 20, value_parser = value_parser!(u32).range(1..))]
    max_queued_tokens: u32,
    /// Longest body of a request in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    max_body_bytes: u32,
    /// Seconds that running requests may take to end after SIGTERM or SIGINT
    #[arg(long, visible_alias = "shutdown-timeout", value_name = "SECONDS", default_value_t = 30)]
    drain_timeout: u32,
    /// What to do when the device is lost: "exit" with 5, for whoever restarts the server, or
    /// "reopen" it and load the model again; requests are answered 503 meanwhile
    #[arg(long, value_name = "WHAT", default_value = "exit", value_parser = ["exit", "reopen"])]
    on_device_lost: String,
    /// A folder that keeps the prefix cache from one start to the next: written while nothing is to be
    /// done and at the end, read at the start, of no more bytes than the caches; nothing is kept if left
    /// out. It holds what prompts and answers say, for its owner alone to read
    #[arg(long, value_name = "DIR")]
    prefix_cache_dir: Option<PathBuf>,
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
    logs: LogOptions,
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
    options.logs.begin();
    let api_keys = api_keys(options)?;
    let tls = tls(options)?;
    if let Some(folder) = &options.prefix_cache_dir {
        PrefixFolder::check(folder, &options.limits.prefix_cache)?;
    }
    let listener = TcpListener::bind((host, port)).map_err(refuse)?;
    let address = listener.local_addr().map_err(refuse)?;
    warn_of(address, options, tls.as_deref());
    let model = options.checkpoint.clone().or_else(|| common.model.clone());
    let common = Common { model, ..common.clone() };
    let name = options.served_model_name.as_deref();
    let how = Loading {
        sequences: options.max_num_seqs,
        reopens: options.on_device_lost == "reopen",
        prefixes: options.prefix_cache_dir.clone(),
    };
    let served = Served::load(&common, &options.limits, how, name)?;
    let Served { engine, model, options: mut server } = served;
    let name = &server.served_model_name;
    let scheme = if tls.is_some() { "https" } else { "http" };
    console::print(format_args!("serving {name} on {scheme}://{address}\n"))?;
    server.tls = tls;
    server.api_keys = api_keys;
    server.max_queued_requests = options.max_queued_requests;
    server.max_queued_tokens = options.max_queued_tokens;
    server.drain_timeout = Duration::from_secs(options.drain_timeout.into());
    server.body.bytes = options.max_body_bytes as usize;
    Server::new(engine, model, server).run_until_signal(listener)?;
    Ok(ExitCode::SUCCESS)
}

/// What encrypts connections, if the options name it.
fn tls(options: &Options) -> Result<Option<Arc<Tls>>> {
    let files = options.tls_cert.as_ref().zip(options.tls_key.as_ref());
    files.map(|(cert, key)| Tls::load(cert, key).map(Arc::new)).transpose()
}

/// Says what an operator may have forgotten.
fn warn_of(address: SocketAddr, options: &Options, tls: Option<&Tls>) {
    if let Some(problem) = tls.and_then(Tls::out_of_date) {
        tracing::warn!("clients will refuse the certificate: {problem}");
    }
    if address.ip().is_loopback() {
        return;
    }
    let has_key = !options.api_keys.is_empty() || options.api_key_file.is_some();
    let problem = match (has_key, tls.is_some()) {
        (true, true) => return,
        (true, false) => "keys and conversations pass unencrypted without --tls-cert",
        (false, true) => "whoever reaches it is answered without --api-key",
        (false, false) => {
            "whoever reaches it is answered without --api-key, and unencrypted without --tls-cert"
        }
    };
    tracing::warn!("{address} is open to other machines: {problem}");
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
