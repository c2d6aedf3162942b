//! Messages to turns: user and tool messages merge, tool results follow the order of the calls.

use super::conversation::{AssistantMessage, Conversation, Message, Part, ResponseFormat};

/// A line that one client puts before its system text; it differs per request and would defeat
/// prefix reuse.
const BILLING_HEADER: &str = "x-anthropic-billing-header";

/// A turn of the prompt.
#[derive(Debug)]
pub(super) enum Turn<'a> {
    /// Instructions.
    System(&'a [Part]),
    /// What users and tools said since the last assistant turn.
    User(Vec<Block<'a>>),
    /// What the model said.
    Assistant(&'a AssistantMessage),
    /// A reminder.
    Reminder(&'a str),
}

/// A block of a user turn. Blocks are separated by a blank line.
#[derive(Debug)]
pub(super) enum Block<'a> {
    /// Of the user.
    Content(&'a [Part]),
    /// Of a tool.
    ToolResult {
        /// Place of the answered call among the calls, 0 when no call has the id; `None` without id.
        order: Option<usize>,
        /// The result.
        content: &'a [Part],
    },
}

/// The turns of a conversation. With `carries_blocks` the first turn is a system turn, for the
/// tools or the response format to be put in; other empty system messages disappear.
pub(super) fn turns(conversation: &Conversation, carries_blocks: bool) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    let mut calls: &[super::conversation::ToolCall] = &[];
    let first_is_system = matches!(conversation.messages.first(), Some(Message::System { .. }));
    if carries_blocks && !first_is_system {
        turns.push(Turn::System(&[]));
    }
    for (index, message) in conversation.messages.iter().enumerate() {
        match message {
            Message::System { content } => {
                if !is_empty(content) || (index == 0 && carries_blocks) {
                    turns.push(Turn::System(content));
                }
            }
            Message::User { content } => push_block(&mut turns, Block::Content(content)),
            Message::Tool { call_id, content } => {
                let order = call_id
                    .as_ref()
                    .map(|id| calls.iter().position(|call| call.id == *id).unwrap_or(0));
                push_block(&mut turns, Block::ToolResult { order, content });
            }
            Message::Assistant(message) => {
                if !message.calls.is_empty() {
                    calls = &message.calls;
                }
                turns.push(Turn::Assistant(message));
            }
            Message::LatestReminder { content } => turns.push(Turn::Reminder(content)),
        }
    }
    for turn in &mut turns {
        if let Turn::User(blocks) = turn {
            sort_results(blocks);
        }
    }
    turns
}

/// True when a system message has nothing to show.
fn is_empty(content: &[Part]) -> bool {
    match content {
        [] => true,
        [Part::Text(text)] => without_billing_header(text).is_empty(),
        _ => false,
    }
}

/// The text that begins a system message, without the header line of that one client and the line
/// ends after it.
pub(super) fn without_billing_header(text: &str) -> &str {
    if !text.starts_with(BILLING_HEADER) {
        return text;
    }
    text.split_once('\n').map_or("", |(_, rest)| rest.trim_start_matches(['\r', '\n']))
}

/// True when the word that JSON output needs occurs in a message.
pub(super) fn mentions_json(conversation: &Conversation) -> bool {
    let says_json = |text: &str| text.to_ascii_lowercase().contains("json");
    let part_says = |part: &Part| matches!(part, Part::Text(text) if says_json(text));
    conversation.messages.iter().any(|message| match message {
        Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
            content.iter().any(part_says)
        }
        Message::Assistant(message) => says_json(&message.content),
        Message::LatestReminder { content } => says_json(content),
    })
}

/// True when the response format needs a block.
pub(super) fn has_format(conversation: &Conversation) -> bool {
    conversation.response_format != ResponseFormat::Text
}

fn push_block<'a>(turns: &mut Vec<Turn<'a>>, block: Block<'a>) {
    match turns.last_mut() {
        Some(Turn::User(blocks)) => blocks.push(block),
        _ => turns.push(Turn::User(vec![block])),
    }
}

/// Puts the results that name a call into the order of the calls, in the places that such results
/// have; everything else stays where it is.
fn sort_results(blocks: &mut [Block<'_>]) {
    let places: Vec<usize> = (0..blocks.len())
        .filter(|&place| matches!(blocks[place], Block::ToolResult { order: Some(_), .. }))
        .collect();
    let order_of = |block: &Block<'_>| match block {
        Block::ToolResult { order, .. } => *order,
        Block::Content(_) => None,
    };
    // Insertion sort over the places: stable, and there are as many results as calls.
    for sorted in 1..places.len() {
        for at in (1..=sorted).rev() {
            let (before, here) = (places[at - 1], places[at]);
            if order_of(&blocks[before]) <= order_of(&blocks[here]) {
                break;
            }
            blocks.swap(before, here);
        }
    }
}
