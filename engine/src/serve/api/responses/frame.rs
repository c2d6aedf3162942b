//! The response object around its output.

use serde_json::{Map, Value, json};

use super::output::Output;
use crate::serve::stamp::Stamp;
use crate::serve::usage::Usage;

/// What a response says whatever comes of it: what it is, and what the request asked for.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    body: Map<String, Value>,
}

impl Frame {
    /// The frame of a request that said `echo`.
    pub(super) fn new(stamp: &Stamp, echo: Map<String, Value>) -> Self {
        let Value::Object(mut body) = json!({
            "id": stamp.id(),
            "object": "response",
            "created_at": stamp.created(),
            "status": "in_progress",
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "max_output_tokens": null,
            "metadata": {},
            "model": stamp.model(),
            "output": [],
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "reasoning": { "effort": null, "summary": null },
            "store": false,
            "temperature": 1.0,
            "text": { "format": { "type": "text" } },
            "tool_choice": "auto",
            "tools": [],
            "top_logprobs": 0,
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": null,
        }) else {
            unreachable!("an object is written above")
        };
        body.extend(echo);
        Self { body }
    }

    /// The response while it grows.
    pub(super) fn begun(&self) -> Value {
        self.body.clone().into()
    }

    /// The response when it is over.
    pub(super) fn complete(&self, output: &Output, usage: Usage) -> Value {
        let mut body = self.with(output);
        if output.is_cut() {
            body["status"] = "incomplete".into();
            body["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        } else {
            body["status"] = "completed".into();
        }
        body["usage"] = json!({
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {
                "cached_tokens": usage.cached_tokens,
                "cache_write_tokens": 0,
            },
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        });
        usage.note_replay(&mut body["usage"]);
        body
    }

    /// The response when it broke off.
    pub(super) fn failed(&self, output: &Output, message: &str) -> Value {
        let mut body = self.with(output);
        body["status"] = "failed".into();
        body["error"] = json!({ "code": "server_error", "message": message });
        body
    }

    fn with(&self, output: &Output) -> Value {
        let mut body = self.begun();
        body["output"] = output.json().into();
        body
    }
}
