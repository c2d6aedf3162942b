//! The command and what it prints.

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use serde_json::{Map, Value, json};
use tandem_engine::{Error, Result};
use ureq::tls::{Certificate, PemItem, parse_pem};

use super::arrivals::Arrivals;
use super::client::Server;
use super::csv::csv;
use super::page::page;
use super::pareto::{self, Point};
use super::summary::{Promise, Summary};
use super::workload::{Lengths, Session};
use crate::arguments::Common;
use crate::console;

/// A run is worse than the best when its goodput is below this part of it.
const WORSE: f64 = 0.95;

/// Which server, how loaded, and with what.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("load").required(true))]
pub(crate) struct Options {
    /// Where the server is
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8000")]
    url: String,
    /// A key that it asks for
    #[arg(long = "client-key", value_name = "KEY")]
    key: Option<String>,
    /// Authorities of the server's certificate, or itself, a file of PEM; those that browsers know if left out
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<String>,
    /// Sessions a second that begin, whatever becomes of the others: one run for each of a list
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = above_zero, group = "load")]
    request_rate: Vec<f64>,
    /// Sessions at once, the next whenever one is over: one run for each of a list
    #[arg(long, value_name = "LIST", value_delimiter = ',', group = "load",
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    max_concurrency: Vec<u16>,
    /// How even the gaps of a rate are: 1 as Poisson has them, less for bursts, more for a steady stream
    #[arg(long, value_name = "SHAPE", default_value_t = 1.0, value_parser = above_zero)]
    burstiness: f64,
    /// Stop at the run whose goodput falls behind the best so far
    #[arg(long)]
    until_worse: bool,
    /// Sessions of a run
    #[arg(long, value_name = "SESSIONS", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    num_prompts: u32,
    /// Words of each question
    #[arg(long, value_name = "WORDS", default_value_t = 256)]
    input_len: u32,
    /// Tokens of an answer at most
    #[arg(long, value_name = "TOKENS", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    output_len: u32,
    /// Words that sessions share before their questions
    #[arg(long, value_name = "WORDS", default_value_t = 0)]
    prefix_len: u32,
    /// How many such beginnings there are
    #[arg(long, value_name = "PREFIXES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    num_prefixes: u32,
    /// Questions of a session, each but the first behind the answer before, as agents ask
    #[arg(long, value_name = "TURNS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    turns: u32,
    /// Milliseconds between an answer and the session's next question
    #[arg(long, value_name = "MS", default_value_t = 0)]
    turn_gap_ms: u32,
    /// Requests before each run that do not count
    #[arg(long, value_name = "REQUESTS", default_value_t = 2)]
    num_warmups: u32,
    /// GPUs that the server has, to say what each gives
    #[arg(long, value_name = "GPUS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    num_gpus: u32,
    /// Seed of words and gaps
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    bench_seed: u64,
    /// Milliseconds to the first token that count as good
    #[arg(long, value_name = "MS", value_parser = above_zero)]
    good_ttft_ms: Option<f64>,
    /// Milliseconds per token behind the first that count as good
    #[arg(long, value_name = "MS", value_parser = above_zero)]
    good_tpot_ms: Option<f64>,
    /// Milliseconds to the last token that count as good
    #[arg(long, value_name = "MS", value_parser = above_zero)]
    good_e2e_ms: Option<f64>,
    #[command(flatten)]
    saved: Saved,
}

/// Where figures go besides the terminal.
#[derive(Args, Debug)]
pub(super) struct Saved {
    /// Write all figures to a file as JSON
    #[arg(long, value_name = "FILE")]
    save_json: Option<String>,
    /// Write a page with plots to a file
    #[arg(long, value_name = "FILE")]
    save_html: Option<String>,
    /// Write the figures of each run to a file as a line of comma-separated values
    #[arg(long, value_name = "FILE")]
    save_csv: Option<String>,
}

impl Saved {
    /// Writes runs, each with the label of its load and that load as a number, behind what is known of all of them; what they
    /// give up for what, where they are known to have run on so many GPUs.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub(super) fn write(
        &self,
        title: &str,
        mut head: Value,
        runs: &[(String, f64, Summary)],
        gpus: Option<u32>,
    ) -> Result<()> {
        let points = gpus.map(|gpus| pareto::points(runs.iter().map(|(_, _, run)| run), gpus));
        let figures = |(at, (label, load, summary)): (usize, &(String, f64, Summary))| {
            let point = points.as_ref().map(|points| Point::json(points[at].as_ref()));
            let parts = [json!({ "load": label, "value": load }), summary.json()];
            let parts = parts.into_iter().chain(point);
            let entries = parts.filter_map(|part| match part {
                Value::Object(entries) => Some(entries),
                _ => None,
            });
            entries.flatten().collect::<Map<_, _>>()
        };
        let figures: Vec<_> = runs.iter().enumerate().map(figures).collect();
        if let Some(path) = &self.save_csv {
            write(path, &csv(&figures))?;
        }
        if let Some(path) = &self.save_json {
            head["runs"] = figures.into();
            write(path, &format!("{head:#}\n"))?;
        }
        match &self.save_html {
            Some(path) => write(path, &page(title, runs, points.as_deref().unwrap_or_default())),
            None => Ok(()),
        }
    }
}

/// Writes a file.
///
/// # Errors
/// When the system does not let it be written.
pub(super) fn write(path: &str, text: &str) -> Result<()> {
    let failed = |source| Error::Io { action: "write", path: path.to_owned(), source };
    fs::write(path, text).map_err(failed)
}

pub(super) fn above_zero(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("give a number above 0".to_owned()),
    }
}

/// Prints a line for each run. Exit code 1 when a request failed.
///
/// # Errors
/// A server that does not answer, files that cannot be written, options of a device.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    let on_device = [common.device.is_some(), !common.kernels.is_empty(), common.threads.is_some()];
    if on_device.contains(&true) {
        let problem = "belongs to the server's own command; leave it out".to_owned();
        return Err(Error::Argument { argument: "--device, --kernel, --threads".into(), problem });
    }
    let roots = options.ca_cert.as_deref().map(certificates).transpose()?;
    let mut server = Server::new(&options.url, options.key.clone(), common.model.clone(), roots);
    server.find_model().map_err(|problem| Error::Argument {
        argument: "--url".into(),
        problem: format!("{}: {problem}; start a server, or name another", options.url),
    })?;
    let mut runs: Vec<(String, f64, Summary)> = vec![];
    console::print(format_args!("{}\n", heading()))?;
    for (arrivals, load) in options.loads() {
        let summary = options.measure(&server, arrivals);
        console::print(format_args!("{}\n", line(&arrivals.label(), &summary)))?;
        let best = runs.iter().map(|(_, _, run)| run.goodput()).fold(0.0, f64::max);
        let is_worse = summary.goodput() < WORSE * best;
        runs.push((arrivals.label(), load, summary));
        if options.until_worse && is_worse {
            console::note("goodput falls behind: the runs end here");
            break;
        }
    }
    let title = format!("Load on {}", options.url);
    options.saved.write(&title, options.json(), &runs, Some(options.num_gpus))?;
    let failures =
        runs.iter().flat_map(|(label, _, run)| run.failures.iter().map(move |f| (label, f)));
    let mut failed = false;
    for (label, (why, count)) in failures {
        failed = true;
        console::aside(format_args!("{label}: {count} failed: {why}"));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The certificates of a file.
fn certificates(path: &str) -> Result<Vec<Certificate<'static>>> {
    let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let text = fs::read(path).map_err(failed)?;
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    let found: Vec<_> = parse_pem(&text).filter_map(certificate).collect();
    match found.is_empty() {
        true => {
            let problem = "holds no certificate; give a file of PEM".to_owned();
            Err(Error::File { file: path.to_owned(), problem })
        }
        false => Ok(found),
    }
}

impl Options {
    fn loads(&self) -> Vec<(Arrivals, f64)> {
        let burstiness = self.burstiness;
        let rates =
            self.request_rate.iter().map(|&rate| (Arrivals::Open { rate, burstiness }, rate));
        let closed = self.max_concurrency.iter();
        let closed = closed.map(|&count| (Arrivals::Closed(count.into()), f64::from(count)));
        rates.chain(closed).collect()
    }

    fn measure(&self, server: &Server, arrivals: Arrivals) -> Summary {
        let seed = self.bench_seed;
        let lengths = Lengths {
            own: self.input_len as usize,
            shared: self.prefix_len as usize,
            prefixes: self.num_prefixes as usize,
            output: self.output_len.into(),
            turns: self.turns as usize,
        };
        for warm_up in 0..self.num_warmups as usize {
            let mut session = Session::new(&lengths, warm_up, !seed);
            session.next(None).map(|body| server.ask(&body, Instant::now()));
        }
        let session = |index| Session::new(&lengths, index, seed);
        let sessions: Vec<_> = (0..self.num_prompts as usize).map(session).collect();
        let pause = Duration::from_millis(self.turn_gap_ms.into());
        let timelines = server.run(&sessions, arrivals, pause, seed);
        let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
        let promise = Promise {
            ttft: seconds(self.good_ttft_ms),
            tpot: seconds(self.good_tpot_ms),
            e2e: seconds(self.good_e2e_ms),
        };
        Summary::new(&timelines, &promise)
    }

    fn json(&self) -> Value {
        json!({
            "tandem": env!("CARGO_PKG_VERSION"), "url": self.url, "seed": self.bench_seed,
            "num_prompts": self.num_prompts, "turns": self.turns, "turn_gap_ms": self.turn_gap_ms,
            "input_words": self.input_len, "output_tokens": self.output_len,
            "prefix_words": self.prefix_len, "num_prefixes": self.num_prefixes,
            "burstiness": self.burstiness, "num_warmups": self.num_warmups, "num_gpus": self.num_gpus,
            "good_ttft_ms": self.good_ttft_ms, "good_tpot_ms": self.good_tpot_ms,
            "good_e2e_ms": self.good_e2e_ms,
        })
    }
}

/// The heads of what [`line()`] writes.
pub(super) fn heading() -> String {
    format!(
        "{:<14}{:>6}{:>7}{:>9}{:>9}{:>10}{:>8}{:>10}{:>10}{:>9}{:>9}{:>9}{:>10}",
        "load",
        "done",
        "failed",
        "req/s",
        "good/s",
        "tokens/s",
        "cached",
        "TTFT p50",
        "p99",
        "TPOT p50",
        "p99",
        "ITL p99",
        "E2E p99"
    )
}

/// A run as a line of a table.
pub(super) fn line(label: &str, s: &Summary) -> String {
    let ms = |seconds: f64| seconds * 1e3;
    let cached = 100.0 * s.cached_tokens as f64 / s.prompt_tokens.max(1) as f64;
    format!(
        "{label:<14}{:>6}{:>7}{:>9.2}{:>9.2}{:>10.1}{cached:>7.0}%{:>10.1}{:>10.1}{:>9.2}{:>9.2}{:>9.1}{:>10.1}",
        s.completed,
        s.failed,
        s.request_rate(),
        s.goodput(),
        s.output_rate(),
        ms(s.ttft.at(0.5)),
        ms(s.ttft.at(0.99)),
        ms(s.tpot.at(0.5)),
        ms(s.tpot.at(0.99)),
        ms(s.itl.at(0.99)),
        ms(s.e2e.at(0.99))
    )
}
