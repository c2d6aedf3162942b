//! How far calls are held to the declared tools.

use crate::grammar::{CalledTool, Calls};
use crate::text::{Conversation, ParseOptions, ReplyStart, ToolChoice};

/// What a request says about its calls besides the tools themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct CallRules {
    /// Tools whose calls follow their schemas.
    pub(super) strict: Vec<String>,
    /// One call at most.
    pub(super) one_call: bool,
}

/// The form of the calls of a reply.
#[derive(Clone, Debug)]
pub(super) struct CallField {
    pub(super) calls: Calls,
    /// Without the schemas that nobody insisted on, when there are any.
    pub(super) least: Option<Calls>,
}

impl CallField {
    /// Of a reply that is read with `options`; `None` where calls come as they like. A reply of which
    /// the prompt begins the calls is held to the schemas that can be followed, and one whose answer
    /// has a form to calls that are well formed.
    pub(super) fn new(
        conversation: &Conversation,
        rules: &CallRules,
        options: &ParseOptions,
        has_form: bool,
    ) -> Option<Self> {
        let begun = options.start == ReplyStart::ToolCalls;
        let wanted = begun || has_form || rules.one_call || !rules.strict.is_empty();
        if !(wanted && options.tool_calls) {
            return None;
        }
        let offered = conversation.tools.iter().filter(|tool| match &conversation.tool_choice {
            ToolChoice::Named(name) => tool.name == *name,
            _ => true,
        });
        let calls = |all: bool| Calls {
            tools: offered
                .clone()
                .map(|tool| CalledTool {
                    name: tool.name.clone(),
                    schema: (all || rules.strict.contains(&tool.name))
                        .then(|| tool.parameters.clone()),
                })
                .collect(),
            several: !rules.one_call,
            begun,
        };
        let least = calls(false);
        let asked = if begun { calls(true) } else { least.clone() };
        Some(Self { least: (asked != least).then_some(least), calls: asked })
    }
}
