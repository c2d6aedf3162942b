//! `tandem generate`: continues a text.

use std::io::{self, IsTerminal, Read};
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tandem_engine::exec::{PromptPicture, Request};
use tandem_engine::text::{PlainStream, Prompt};
use tandem_engine::{Error, Result, regular_file};

use crate::arguments::Common;
use crate::batch;
use crate::console;
use crate::limits::Limits;
use crate::model::Source;
use crate::pictures;
use crate::ready::{Pictures, Ready, Work};
use crate::sampling::Sampling;

/// What to continue, and how.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The text to continue
    #[arg(required_unless_present_any = ["file", "input"])]
    prompt: Option<String>,
    /// Read the text from a file instead; - for standard input
    #[arg(short, long, value_name = "PATH", conflicts_with = "prompt")]
    file: Option<String>,
    /// Answer the requests of a file instead, one a line in OpenAI's batch form: {"custom_id", "method", "url", "body"}; what
    /// a body leaves out is as on the server, not as the options here
    #[arg(long, value_name = "FILE", requires = "output", conflicts_with_all = [
        "prompt", "file", "image", "max_tokens", "ignore_eos", "stop", "Sampling",
    ])]
    input: Option<String>,
    /// Where their answers go, one a line; requests that it answers already are left out
    #[arg(long, value_name = "FILE", requires = "input")]
    output: Option<String>,
    /// Requests of --input that run at once
    #[arg(long, value_name = "SEQUENCES", default_value_t = 8, requires = "input")]
    max_num_seqs: u64,
    /// A PNG or JPEG file to put before the text; may be repeated
    #[arg(long, value_name = "FILE")]
    image: Vec<String>,
    /// Tokens to generate at most
    #[arg(
        short = 'n',
        long,
        visible_alias = "n-predict",
        value_name = "TOKENS",
        default_value_t = 128,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    max_tokens: u64,
    /// Go on after the token that ends a text
    #[arg(long)]
    ignore_eos: bool,
    /// End before this text; may be repeated
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    limits: Limits,
}

/// Prints the continuation as it is generated.
///
/// # Errors
/// Whatever is wrong with the arguments, the checkpoint or the devices.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    if let (Some(input), Some(output)) = (&options.input, &options.output) {
        batch::run(common, &options.limits, options.max_num_seqs, (input, output))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = match (&options.prompt, &options.file) {
        (Some(prompt), _) => prompt.clone(),
        (None, file) => read(file.as_deref().unwrap_or("-"))?,
    };
    let sampling = options.sampling.parameters()?;
    let (inputs, work) = if options.image.is_empty() {
        (Vec::new(), Work::ALONE)
    } else {
        // Before the weights are read: a file that is no picture is known at once.
        let config = Source::named(common.model.as_deref())?.config;
        let read = |path: &String| pictures::read(path, &config);
        let inputs = options.image.iter().map(read).collect::<Result<_>>()?;
        (inputs, Work { pictures: Pictures::Yes, ..Work::ALONE })
    };
    let mut ready = Ready::load(common, &options.limits, work)?;
    let prompt = ready.encode(&Prompt::continuation(inputs.len(), &text))?;
    let (prompt, pictures) = PromptPicture::place(&prompt, &inputs);
    let request = Request {
        prompt,
        pictures,
        sampling,
        stop_ids: if options.ignore_eos { vec![] } else { vec![ready.source.config.eos_token_id] },
        max_tokens: Some(options.max_tokens),
        drafts: true,
        ..Request::default()
    };
    let mut text = PlainStream::new(&options.stop);
    ready.answer(
        request,
        || false,
        |tokenizer, id| {
            console::print(text.push(tokenizer, &[id]))?;
            Ok(if text.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    )?;
    console::print(text.finish())?;
    if io::stdout().is_terminal() {
        console::print("\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A text from a file or from standard input.
fn read(path: &str) -> Result<String> {
    let bytes = match path {
        "-" => {
            let mut bytes = Vec::new();
            let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
            io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
            bytes
        }
        path => regular_file::read(path, u64::MAX, "give a text file, or - for standard input")?,
    };
    String::from_utf8(bytes).map_err(|error| Error::File {
        file: path.to_owned(),
        problem: format!(
            "not UTF-8 from byte {} on; convert it to UTF-8",
            error.utf8_error().valid_up_to()
        ),
    })
}
