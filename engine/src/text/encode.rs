//! Conversation to prompt.

use super::control::ControlToken;
use super::conversation::{
    AssistantMessage, Conversation, Message, Part, ResponseFormat, Task, Tool, ToolChoice,
};
use super::error::ConversationError;
use super::markup::{open_calls, render_calls};
use super::parse::ParseOptions;
use super::prompt::{Prompt, ReplyStart};
use super::system_blocks::{render_format, render_tools};
use super::turns::{Block, Turn, has_format, mentions_json, turns, without_billing_header};

impl Conversation {
    /// Renders the prompt that asks the model for the next reply.
    ///
    /// # Errors
    /// A [`ConversationError`] that says what the model cannot be asked.
    pub fn prompt(&self) -> Result<Prompt, ConversationError> {
        let tools = self.offered_tools()?;
        self.check(&tools)?;
        let carries_blocks = !tools.is_empty() || has_format(self);
        let turns = turns(self, carries_blocks);
        let renderer = Renderer {
            conversation: self,
            keeps_reasoning: self.keep_reasoning || !tools.is_empty(),
            tools,
        };
        Ok(renderer.render(&turns))
    }

    /// How to read the reply to `prompt`, the prompt of this conversation. `stop` are the request's
    /// stop strings.
    pub fn parse_options(&self, prompt: &Prompt, stop: Vec<String>) -> ParseOptions {
        ParseOptions {
            start: prompt.reply_start,
            tool_calls: self.offered_tools().is_ok_and(|tools| !tools.is_empty()),
            json: self.response_format == ResponseFormat::JsonObject,
            stop,
        }
    }

    /// The tools that the prompt shows.
    fn offered_tools(&self) -> Result<Vec<&Tool>, ConversationError> {
        match &self.tool_choice {
            ToolChoice::None => Ok(Vec::new()),
            ToolChoice::Auto | ToolChoice::Required => Ok(self.tools.iter().collect()),
            ToolChoice::Named(name) => self
                .tools
                .iter()
                .find(|tool| tool.name == *name)
                .map(|tool| vec![tool])
                .ok_or_else(|| ConversationError::UnknownToolChoice { name: name.clone() }),
        }
    }

    /// Refuses what has no prompt.
    fn check(&self, tools: &[&Tool]) -> Result<(), ConversationError> {
        let Some(last) = self.messages.len().checked_sub(1) else {
            return Err(ConversationError::Empty);
        };
        if self.thinking && self.opens_calls(tools) {
            let choice = match &self.tool_choice {
                ToolChoice::Named(name) => name.clone(),
                _ => "required".to_owned(),
            };
            return Err(ConversationError::ToolChoiceWhileThinking { choice });
        }
        let prefix = self
            .messages
            .iter()
            .position(|message| matches!(message, Message::Assistant(said) if said.prefix));
        if let Some(index) = prefix {
            if index != last {
                return Err(ConversationError::PrefixNotLast { index });
            }
            if !tools.is_empty() {
                return Err(ConversationError::PrefixWithTools);
            }
            if has_format(self) {
                return Err(ConversationError::PrefixWithJson);
            }
        }
        if self.response_format == ResponseFormat::JsonObject && !mentions_json(self) {
            return Err(ConversationError::JsonNotMentioned);
        }
        Ok(())
    }

    /// True when the prompt itself opens the tool-call block.
    fn opens_calls(&self, tools: &[&Tool]) -> bool {
        !tools.is_empty() && matches!(self.tool_choice, ToolChoice::Required | ToolChoice::Named(_))
    }
}

/// What rendering needs to know besides the turns.
struct Renderer<'a> {
    conversation: &'a Conversation,
    tools: Vec<&'a Tool>,
    /// Reasoning of earlier turns stays in the prompt.
    keeps_reasoning: bool,
}

impl Renderer<'_> {
    fn render(&self, turns: &[Turn<'_>]) -> Prompt {
        let mut prompt = Prompt::new(ReplyStart::Content);
        prompt.control(ControlToken::Bos);
        for (index, turn) in turns.iter().enumerate() {
            if index == 0 {
                self.open_prompt(turn, &mut prompt);
            }
            match turn {
                Turn::System(content) => self.system(content, index, &mut prompt),
                Turn::User(blocks) => user(blocks, &mut prompt),
                Turn::Reminder(text) => {
                    prompt.control(ControlToken::LatestReminder);
                    prompt.text(text);
                }
                Turn::Assistant(message) if message.prefix => {
                    self.continued(message, &mut prompt);
                    return prompt;
                }
                Turn::Assistant(message) => self.assistant(message, &mut prompt),
            }
        }
        self.open_reply(&mut prompt);
        prompt
    }

    /// The effort line comes first whatever the first turn is; a system turn shares its marker.
    fn open_prompt(&self, first: &Turn<'_>, prompt: &mut Prompt) {
        let thinking = self.conversation.thinking;
        if thinking || matches!(first, Turn::System(_)) {
            prompt.control(ControlToken::System);
        }
        if thinking {
            let effort = self.conversation.effort.number();
            prompt.text(&format!(
                "Reasoning Effort: {effort} (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
            ));
        }
    }

    fn system(&self, content: &[Part], index: usize, prompt: &mut Prompt) {
        if index > 0 {
            prompt.control(ControlToken::System);
        }
        match content.split_first() {
            Some((Part::Text(first), rest)) => {
                prompt.text(without_billing_header(first));
                parts(rest, true, prompt);
            }
            _ => parts(content, false, prompt),
        }
        if index == 0 {
            render_tools(&self.tools, prompt);
            render_format(&self.conversation.response_format, prompt);
        }
    }

    /// A finished turn of the model.
    fn assistant(&self, message: &AssistantMessage, prompt: &mut Prompt) {
        prompt.control(ControlToken::Assistant);
        if self.conversation.thinking && self.keeps_reasoning {
            prompt.control(ControlToken::ThinkOpen);
            prompt.text(message.reasoning.as_deref().unwrap_or_default());
        }
        prompt.control(ControlToken::ThinkClose);
        prompt.text(&message.content);
        if !message.calls.is_empty() {
            render_calls(&message.calls, prompt);
        }
        prompt.control(ControlToken::Eos);
    }

    /// A turn that the model goes on with. Without content it goes on with the reasoning.
    fn continued(&self, message: &AssistantMessage, prompt: &mut Prompt) {
        prompt.control(ControlToken::Assistant);
        prompt.reply_start = ReplyStart::ContentContinuation;
        if self.conversation.thinking {
            prompt.control(ControlToken::ThinkOpen);
            prompt.text(message.reasoning.as_deref().unwrap_or_default());
            if message.content.is_empty() {
                prompt.reply_start = ReplyStart::ReasoningContinuation;
                return;
            }
        }
        prompt.control(ControlToken::ThinkClose);
        prompt.text(&message.content);
    }

    /// The header of the reply that the model is to write.
    fn open_reply(&self, prompt: &mut Prompt) {
        let task = self.conversation.task;
        if let Some(task) = task.filter(|&task| task != Task::Action) {
            prompt.control(task_token(task));
            return;
        }
        prompt.control(ControlToken::Assistant);
        if self.conversation.thinking {
            prompt.control(ControlToken::ThinkOpen);
            prompt.reply_start = ReplyStart::Reasoning;
        } else {
            prompt.control(ControlToken::ThinkClose);
        }
        if task.is_some() {
            prompt.control(ControlToken::Action);
        }
        if self.conversation.opens_calls(&self.tools) {
            open_calls(prompt);
            prompt.reply_start = ReplyStart::ToolCalls;
        }
    }
}

fn user(blocks: &[Block<'_>], prompt: &mut Prompt) {
    prompt.control(ControlToken::User);
    for (index, block) in blocks.iter().enumerate() {
        prompt.text(if index == 0 { "" } else { "\n\n" });
        match block {
            Block::Content(content) => parts(content, false, prompt),
            Block::ToolResult { content, .. } => {
                prompt.text("<tool_result>");
                parts(content, false, prompt);
                prompt.text("</tool_result>");
            }
        }
    }
}

/// Parts with a blank line between them, and one before them when something `precedes` them.
fn parts(parts: &[Part], precedes: bool, prompt: &mut Prompt) {
    for (index, part) in parts.iter().enumerate() {
        prompt.text(if index == 0 && !precedes { "" } else { "\n\n" });
        match part {
            Part::Text(text) => prompt.text(text),
            Part::Picture(picture) => prompt.picture(*picture),
        }
    }
}

const fn task_token(task: Task) -> ControlToken {
    match task {
        Task::Action => ControlToken::Action,
        Task::Query => ControlToken::Query,
        Task::Authority => ControlToken::Authority,
        Task::Domain => ControlToken::Domain,
        Task::Title => ControlToken::Title,
        Task::ReadUrl => ControlToken::ReadUrl,
    }
}
