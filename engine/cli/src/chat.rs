//! `tandem chat`: a conversation on the terminal.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tandem_engine::exec::{FinishReason, Forward, PromptPicture, Request};
use tandem_engine::sample::SamplingParameters;
use tandem_engine::text::{
    AssistantMessage, Conversation, Event, GenerationEnd, Message, Part, Reply, ReplyStream,
    SamplingFields, SamplingRequest, TextError,
};
use tandem_engine::vision::PictureInput;
use tandem_engine::{Error, Result};

use crate::arguments::Common;
use crate::console;
use crate::interrupt::Interrupt;
use crate::limits::Limits;
use crate::pictures;
use crate::ready::{Pictures, Ready, Work};
use crate::sampling::Sampling;
use crate::transcript::Transcript;

/// How to talk.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Instructions before the conversation
    #[arg(long, visible_alias = "system", value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Whether the model reasons before it answers; on, but off for the built-in demo
    #[arg(long, value_name = "ON|OFF")]
    thinking: Option<Thinking>,
    /// Tokens of an answer at most; as the hosted model, but 200 for the built-in demo
    #[arg(
        short = 'n',
        long,
        visible_alias = "n-predict",
        value_name = "TOKENS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    max_tokens: Option<u64>,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    limits: Limits,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Thinking {
    On,
    Off,
}

/// Tokens of an answer of the built-in demo, which was not trained to end its turn.
const DEMO_TOKENS: u64 = 200;

const HELP: &str = "\
/image FILE  show the model a picture with the next message; may be repeated
/reset       forget the conversation
/exit        end it, as Ctrl-D does
Ctrl-C       stop an answer
";

/// Reads messages and prints answers until the input ends.
///
/// # Errors
/// Whatever is wrong with the arguments, the checkpoint or the devices, or with one message when
/// the input is not a terminal.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    let sampling = options.sampling.parameters()?;
    let work = Work { pictures: Pictures::WherePossible, ..Work::ALONE };
    let ready = Ready::load(common, &options.limits, work)?;
    // The editor listens for Ctrl-C too; of two listeners the later one hears it.
    let mut editor = DefaultEditor::new().map_err(unreadable)?;
    let mut talk = Talk::new(ready, options, sampling)?;
    let interactive = io::stdin().is_terminal();
    if interactive {
        let name = &talk.ready.source.name;
        console::print(format_args!("{name}; /help lists commands, Ctrl-D ends\n"))?;
    }
    loop {
        let line = match editor.readline(if interactive { "> " } else { "" }) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(unreadable(error)),
        };
        if line.trim().is_empty() {
            continue;
        }
        // History is a convenience; a line that it refuses is answered all the same.
        let _kept = editor.add_history_entry(&line);
        let image = line.trim().split_once(char::is_whitespace).filter(|(at, _)| *at == "/image");
        let shows = image.is_some();
        let done = match image {
            Some((_, path)) => talk.show(path.trim()),
            None => match line.trim() {
                "/exit" => return Ok(ExitCode::SUCCESS),
                "/reset" => {
                    talk.reset();
                    Ok(())
                }
                "/help" => console::print(HELP),
                "/image" => {
                    console::complain("/image lacks its file; say /image FILE, a PNG or JPEG");
                    Ok(())
                }
                command if command.starts_with('/') => {
                    console::complain(&format!("no command {command}; /help lists them"));
                    Ok(())
                }
                _ => talk.ask(line),
            },
        };
        match done {
            // On a terminal the user can correct a line; a script cannot.
            Err(error) if interactive && error.is_caller_mistake() => {
                // A picture that is refused leaves the conversation as it was.
                let remedy = if shows { "" } else { "; or start anew with /reset" };
                console::complain(&format!("{error}{remedy}"));
            }
            done => done?,
        }
    }
}

/// Input that is no text, or cannot be read at all.
fn unreadable(error: ReadlineError) -> Error {
    let path = "standard input".to_owned();
    match error {
        ReadlineError::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
            Error::File { file: path, problem: "a line is not UTF-8; convert it to UTF-8".into() }
        }
        ReadlineError::Io(source) => Error::Io { action: "read", path, source },
        other => Error::Io { action: "read", path, source: io::Error::other(other) },
    }
}

/// A conversation and the model that answers.
struct Talk<'a> {
    ready: Ready,
    options: &'a Options,
    conversation: Conversation,
    sampling: SamplingParameters,
    /// Those of the conversation, by the numbers that its messages give them.
    pictures: Vec<Arc<PictureInput>>,
    /// How many of them no message has yet.
    unsaid: usize,
    interrupt: Interrupt,
}

impl<'a> Talk<'a> {
    fn new(ready: Ready, options: &'a Options, sampling: SamplingParameters) -> Result<Self> {
        let mut conversation = Conversation::new(Vec::new());
        conversation.thinking = match options.thinking {
            Some(thinking) => thinking == Thinking::On,
            None => !ready.source.is_demo(),
        };
        let interrupt = Interrupt::install()?;
        let (pictures, unsaid) = (Vec::new(), 0);
        let mut talk = Self { ready, options, conversation, sampling, pictures, unsaid, interrupt };
        talk.reset();
        Ok(talk)
    }

    fn reset(&mut self) {
        let system = self.options.system_prompt.iter();
        self.conversation.messages = system.map(Message::system).collect();
        self.pictures.clear();
        self.unsaid = 0;
    }

    /// Keeps a picture for the next message.
    fn show(&mut self, path: &str) -> Result<()> {
        if self.ready.engine.model().geometry().pictures.is_none() {
            let problem =
                "the model has no vision tower, or was loaded without it; send text alone";
            return Err(Error::Argument { argument: "/image".into(), problem: problem.into() });
        }
        self.pictures.push(pictures::read(path, &self.ready.source.config)?);
        self.unsaid += 1;
        Ok(())
    }

    /// Answers a message. A message that cannot be answered is taken back with its pictures.
    fn ask(&mut self, message: String) -> Result<()> {
        let said = self.pictures.len() - std::mem::take(&mut self.unsaid);
        let pictures = (said..self.pictures.len()).map(Part::Picture);
        let content = pictures.chain([Part::Text(message)]).collect();
        self.conversation.messages.push(Message::User { content });
        let answered = self.answer();
        if answered.is_err() {
            self.conversation.messages.pop();
            self.pictures.truncate(said);
        }
        let (reply, reason) = answered?;
        match reason {
            FinishReason::Length => console::note("the token limit ended the answer"),
            FinishReason::Cancelled => console::note("stopped"),
            FinishReason::Stop(_) | FinishReason::NotANumber | FinishReason::FormLost => {}
        }
        self.conversation.messages.push(Message::Assistant(AssistantMessage {
            reasoning: (!reply.reasoning.is_empty()).then_some(reply.reasoning),
            content: reply.content,
            ..AssistantMessage::default()
        }));
        Ok(())
    }

    fn answer(&mut self) -> Result<(Reply, FinishReason)> {
        let prompt = self.conversation.prompt().map_err(TextError::from)?;
        let read = self.conversation.parse_options(&prompt, Vec::new());
        let prompt = self.ready.encode(&prompt)?;
        let (prompt, pictures) = PromptPicture::place(&prompt, &self.pictures);
        let request = Request {
            max_tokens: Some(self.max_tokens(prompt.len() as u64)),
            prompt,
            pictures,
            sampling: self.sampling.clone(),
            stop_ids: vec![self.ready.source.config.eos_token_id],
            drafts: true,
            ..Request::default()
        };
        let mut stream = ReplyStream::new(read);
        let (mut reply, mut transcript) = (Reply::default(), Transcript::new());
        let mut show = |events: Vec<Event>| -> Result<()> {
            for event in events {
                transcript.show(&event)?;
                reply.add(event);
            }
            Ok(())
        };
        let answering = self.interrupt.answering();
        let reason = self.ready.answer(
            request,
            || answering.stopped(),
            |tokenizer, id| {
                show(stream.push(tokenizer, &[id]))?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        show(stream.finish(match reason {
            FinishReason::Stop(_) => GenerationEnd::StopToken,
            _ => GenerationEnd::Limit,
        }))?;
        Ok((reply, reason))
    }

    fn max_tokens(&self, prompt_tokens: u64) -> u64 {
        let demo = self.ready.source.is_demo().then_some(DEMO_TOKENS);
        let asked = SamplingRequest {
            max_tokens: self.options.max_tokens.or(demo),
            ..SamplingRequest::default()
        };
        let left = self.ready.engine.capacity_tokens().saturating_sub(prompt_tokens);
        let Conversation { thinking, effort, .. } = self.conversation;
        let SamplingFields { max_tokens, .. } = asked.resolve(thinking, effort, left);
        max_tokens
    }
}
