//! Fields that clients are known to send and this server does not support, and why.

/// Why a field of a chat request is not supported, when it is known.
pub(super) fn chat_field(name: &str) -> Option<&'static str> {
    match name {
        "functions" | "function_call" => Some("an older form; use tools and tool_choice"),
        "audio" | "modalities" => Some("the model reads text and pictures and writes text"),
        "prediction" => Some("predicted outputs are not supported; leave it out"),
        "web_search_options" => Some("the server does not search; declare a tool"),
        "verbosity" => Some("the model has no such setting; say it in the messages"),
        "echo" | "suffix" | "best_of" => Some("a field of /v1/completions"),
        _ => shared_field(name),
    }
}

/// As [`chat_field`], of a completion request.
pub(super) fn completion_field(name: &str) -> Option<&'static str> {
    match name {
        "messages"
        | "tools"
        | "tool_choice"
        | "thinking"
        | "reasoning_effort"
        | "chat_template_kwargs"
        | "response_format"
        | "top_logprobs" => Some("a field of /v1/chat/completions"),
        "suffix" => Some("filling in the middle is not supported; leave it out"),
        _ => shared_field(name),
    }
}

fn shared_field(name: &str) -> Option<&'static str> {
    match name {
        "service_tier" => Some("there is one tier; leave it out"),
        "ignore_eos" | "min_tokens" | "include_stop_str_in_output" => {
            Some("not supported; end replies by stop strings, stop_token_ids and max_tokens")
        }
        "guided_json" | "guided_regex" | "guided_choice" | "guided_grammar" => {
            Some("an older form; use structured_outputs")
        }
        "use_beam_search" | "length_penalty" | "typical_p" | "mirostat" | "prompt_logprobs" => {
            Some("not supported; leave it out")
        }
        _ => None,
    }
}
