//! The reply parser: pieces of output to events.
//!
//! Generation starts right behind the tag that the prompt ended with. Markers are real control
//! tokens; text that spells one is text. How the output is cut into pieces does not change the
//! joined events.
//!
//! Line ends around the closing tag of the reasoning, at the start of an answer and before a tool
//! block are not shown; those that continue a text that the prompt began are.

use super::answer_filter::{FENCE_CLOSE, JsonStart, Surroundings};
use super::control::ControlToken;
use super::event::{Event, EventList, FinishReason};
use super::prompt::ReplyStart;
use super::stop::StopStrings;
use super::tool_block::ToolBlock;

/// How to read a reply.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParseOptions {
    /// Where the prompt left off.
    pub start: ReplyStart,
    /// Read tool-call markup. Without it the markup is text.
    pub tool_calls: bool,
    /// The answer is to be JSON: text around it becomes a space.
    pub json: bool,
    /// The answer ends before the first of these; reasoning and tool calls are not searched.
    pub stop: Vec<String>,
}

/// A piece of output.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Text of ordinary tokens.
    Text(&'a str),
    /// One token of the added vocabulary.
    Token {
        /// Its role, when it has one.
        control: Option<ControlToken>,
        /// Its spelling, shown when it means nothing here.
        spelling: &'a str,
    },
}

/// Why the engine stopped generating.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GenerationEnd {
    /// The stop token; it is not a piece.
    StopToken,
    /// A token limit.
    Limit,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum State {
    Reasoning,
    Content,
    /// Before the JSON of a JSON answer.
    BeforeJson(Surroundings),
    Json,
    AfterJson(Surroundings),
    Tools(ToolBlock),
    Finished,
}

/// Reads the pieces of one reply.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReplyParser {
    state: State,
    options: ParseOptions,
    stops: StopStrings,
    /// Line ends are dropped until anything else comes.
    at_start: bool,
    /// Text that may belong to a marker or stop string.
    held: String,
    /// The stop string that ended the reply.
    stop_string: Option<String>,
    events: EventList,
}

impl ReplyParser {
    /// Where the prompt left off.
    pub fn start(&self) -> ReplyStart {
        self.options.start
    }

    /// A parser at the start of a reply.
    pub fn new(options: ParseOptions) -> Self {
        let stops = StopStrings::new(&options.stop);
        let continues = matches!(
            options.start,
            ReplyStart::ReasoningContinuation | ReplyStart::ContentContinuation
        );
        let mut parser = Self {
            state: State::Reasoning,
            options,
            stops,
            at_start: !continues,
            held: String::new(),
            stop_string: None,
            events: EventList::default(),
        };
        match parser.options.start {
            ReplyStart::Reasoning | ReplyStart::ReasoningContinuation => {}
            ReplyStart::Content | ReplyStart::ContentContinuation => {
                parser.state = parser.answer_state();
            }
            ReplyStart::ToolCalls => parser.state = State::Tools(ToolBlock::new()),
        }
        parser
    }

    /// Reads pieces; returns what they complete.
    pub fn push<'a>(&mut self, pieces: impl IntoIterator<Item = Piece<'a>>) -> Vec<Event> {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    for character in text.chars() {
                        self.character(character);
                    }
                    self.release();
                }
                Piece::Token { control, spelling } => self.token(control, spelling),
            }
        }
        self.events.take()
    }

    /// Ends the reply: shows what was held back and says why it ended. Nothing follows; a reply
    /// that a stop string ended has said so already.
    pub fn finish(&mut self, end: GenerationEnd) -> Vec<Event> {
        let reason = match (end, &self.state) {
            (_, State::Finished) => return self.events.take(),
            (GenerationEnd::Limit, _) => FinishReason::Length,
            (GenerationEnd::StopToken, State::Tools(block)) if block.calls() > 0 => {
                FinishReason::ToolCalls
            }
            (GenerationEnd::StopToken, _) => FinishReason::Stop,
        };
        self.flush();
        self.end(reason);
        self.events.take()
    }

    /// The stop string that ended the reply.
    pub fn stop_string(&self) -> Option<&str> {
        self.stop_string.as_deref()
    }

    /// True when a stop string ended the reply: more pieces would be dropped.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished)
    }

    /// True when all that can still follow is dropped: behind the tool calls, or finished.
    pub fn is_discarding(&self) -> bool {
        match &self.state {
            State::Finished => true,
            State::Tools(block) => block.is_closed(),
            _ => false,
        }
    }

    fn answer_state(&self) -> State {
        if self.options.json { State::BeforeJson(Surroundings::default()) } else { State::Content }
    }

    fn end(&mut self, reason: FinishReason) {
        self.events.push(Event::Finish(reason));
        self.state = State::Finished;
    }

    fn character(&mut self, character: char) {
        let reads_lines =
            matches!(self.state, State::Reasoning | State::Content | State::BeforeJson(_));
        if reads_lines && self.at_start && character == '\n' {
            return;
        }
        self.at_start = false;
        match &mut self.state {
            State::Reasoning => self.held.push(character),
            State::Content => self.answer_character(character),
            State::Json => {
                self.answer_character(character);
                self.close_fence();
            }
            State::BeforeJson(surroundings) => {
                let Some(start) = surroundings.before(character, &mut self.events) else { return };
                self.state = State::Json;
                if start == JsonStart::Bracket {
                    self.character(character);
                }
            }
            State::AfterJson(surroundings) => surroundings.after(character, &mut self.events),
            State::Tools(block) => block.push(character, &mut self.events),
            State::Finished => {}
        }
    }

    /// A character in which stop strings are looked for.
    fn answer_character(&mut self, character: char) {
        self.held.push(character);
        if let Some(length) = self.stops.push(character) {
            self.stop_string = Some(self.held.split_off(self.held.len() - length));
            self.flush();
            self.end(FinishReason::Stop);
        }
    }

    fn close_fence(&mut self) {
        if matches!(self.state, State::Json) && self.held.ends_with(FENCE_CLOSE) {
            self.held.truncate(self.held.len() - FENCE_CLOSE.len());
            self.flush();
            self.state = State::AfterJson(Surroundings::default());
        }
    }

    /// Shows the held text except what may still be part of a marker or stop string.
    fn release(&mut self) {
        let tag = tag_start_bytes(&self.held);
        let kept = match self.state {
            State::Reasoning => tag,
            State::Content => tag.max(self.stops.pending_bytes()),
            State::Json => fence_start_bytes(&self.held).max(self.stops.pending_bytes()),
            _ => 0,
        };
        let rest = self.held.split_off(self.held.len() - kept);
        self.show();
        self.held = rest;
    }

    /// Shows everything that is held back.
    fn flush(&mut self) {
        self.show();
        match &mut self.state {
            State::BeforeJson(surroundings) | State::AfterJson(surroundings) => {
                surroundings.flush(&mut self.events);
            }
            State::Tools(block) => block.finish(&mut self.events),
            _ => {}
        }
        self.stops.reset();
    }

    /// Shows the held text.
    fn show(&mut self) {
        match self.state {
            State::Reasoning => self.events.reasoning(&self.held),
            State::Content | State::Json => self.events.content(&self.held),
            _ => {}
        }
        self.held.clear();
    }

    fn token(&mut self, control: Option<ControlToken>, spelling: &str) {
        let is = |token| control == Some(token);
        if let State::Tools(block) = &mut self.state {
            block.push_token(control, spelling, &mut self.events);
        } else if is(ControlToken::Dsml) && self.options.tool_calls && self.take_tag_start() {
            self.flush();
            self.state = State::Tools(ToolBlock::new());
        } else if is(ControlToken::ThinkClose) && self.closes_thinking() {
            if matches!(self.state, State::Reasoning) {
                let text = self.held.trim_end_matches('\n').len();
                self.held.truncate(text);
                self.flush();
                self.state = self.answer_state();
                self.at_start = true;
            } else {
                // A second one means nothing.
                self.flush();
                self.at_start = false;
            }
        } else {
            self.unknown_token(spelling);
        }
    }

    /// True where the closing tag of the reasoning is not text.
    fn closes_thinking(&self) -> bool {
        matches!(self.state, State::Reasoning | State::Content | State::BeforeJson(_))
    }

    /// Takes `<` and the line ends before it off the held text, where a tag may begin.
    fn take_tag_start(&mut self) -> bool {
        match &mut self.state {
            State::Reasoning | State::Content => {
                let starts = self.held.ends_with('<');
                if starts {
                    self.held.truncate(self.held.len() - tag_start_bytes(&self.held));
                }
                starts
            }
            State::BeforeJson(surroundings) | State::AfterJson(surroundings) => {
                surroundings.take_tag_start()
            }
            _ => false,
        }
    }

    /// A token without meaning in this place is text, but not part of any marker.
    fn unknown_token(&mut self, spelling: &str) {
        self.flush();
        self.at_start = false;
        match &mut self.state {
            State::Reasoning => self.events.reasoning(spelling),
            State::Content | State::Json => self.events.content(spelling),
            State::BeforeJson(surroundings) | State::AfterJson(surroundings) => {
                surroundings.space(&mut self.events);
            }
            State::Tools(_) | State::Finished => {}
        }
    }
}

/// Bytes at the end of `text` that a tag may swallow: line ends, then at most one `<`.
fn tag_start_bytes(text: &str) -> usize {
    let before = text.strip_suffix('<').unwrap_or(text);
    text.len() - before.trim_end_matches('\n').len()
}

/// Bytes at the end of `text` that may begin a closing fence.
fn fence_start_bytes(text: &str) -> usize {
    (1..FENCE_CLOSE.len()).rev().find(|&bytes| text.ends_with(&FENCE_CLOSE[..bytes])).unwrap_or(0)
}
