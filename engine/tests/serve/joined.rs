//! A reply, however it was sent.

use serde_json::Value;

use crate::client::Streamed;

impl Streamed {
    /// Joins the chunks of a chat to what the same request not streamed answers: message, finish
    /// reason and usage.
    #[track_caller]
    pub fn joined(&self) -> Joined {
        let mut joined = Joined::default();
        for chunk in &self.chunks {
            if !chunk["usage"].is_null() {
                joined.usage = chunk["usage"].clone();
            }
            let Some(choice) = chunk["choices"].get(0) else { continue };
            assert!(joined.finish.is_null(), "a choice behind the finish reason");
            joined.finish = choice["finish_reason"].clone();
            joined.text += choice["text"].as_str().unwrap_or_default();
            let delta = &choice["delta"];
            joined.text += delta["content"].as_str().unwrap_or_default();
            joined.reasoning += delta["reasoning_content"].as_str().unwrap_or_default();
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                joined.add_call(call);
            }
            let entries = choice["logprobs"]["content"].as_array();
            joined.logprobs.extend(entries.into_iter().flatten().cloned());
        }
        joined
    }
}

/// A reply, however it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Joined {
    pub text: String,
    pub reasoning: String,
    /// Name and arguments of each call.
    pub calls: Vec<(String, String)>,
    pub call_ids: Vec<String>,
    pub finish: Value,
    pub usage: Value,
    pub logprobs: Vec<Value>,
}

impl Joined {
    /// A chat reply that was not streamed.
    #[track_caller]
    pub fn of_chat(body: &Value) -> Self {
        let choice = &body["choices"][0];
        let message = &choice["message"];
        assert_eq!(message["role"], "assistant");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut joined = Self {
            text: text(&message["content"]),
            reasoning: text(&message["reasoning_content"]),
            finish: choice["finish_reason"].clone(),
            usage: body["usage"].clone(),
            logprobs: choice["logprobs"]["content"].as_array().cloned().unwrap_or_default(),
            ..Self::default()
        };
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            joined
                .calls
                .push((text(&call["function"]["name"]), text(&call["function"]["arguments"])));
            joined.call_ids.push(text(&call["id"]));
        }
        joined
    }

    fn add_call(&mut self, call: &Value) {
        let index = usize::try_from(call["index"].as_u64().expect("calls have an index")).unwrap();
        if index == self.calls.len() {
            self.calls.push(Default::default());
            self.call_ids.push(call["id"].as_str().expect("a call begins with its id").to_owned());
        }
        let (name, arguments) = &mut self.calls[index];
        *name += call["function"]["name"].as_str().unwrap_or_default();
        *arguments += call["function"]["arguments"].as_str().unwrap_or_default();
    }

    /// Equal but for what is new in every reply.
    #[track_caller]
    pub fn assert_same(&self, other: &Self) {
        let without = |joined: &Self| Self { call_ids: Vec::new(), ..joined.clone() };
        assert_eq!(without(self), without(other));
    }
}
