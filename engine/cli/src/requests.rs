//! `tandem verify --requests`: whether a model that is served says what it should, by the server's own routes.

use std::process::ExitCode;

use serde_json::{Value, json};
use tandem_engine::Result;
use tandem_engine::serve::{Local, LocalReply};

use crate::arguments::Common;
use crate::console;
use crate::limits::Limits;
use crate::model::Source;
use crate::served::{Loading, Served};

/// A square with four colours, and one line of pixels.
const PICTURES: [(&str, &str); 2] = [
    ("a picture", include_str!("../demo/square.b64")),
    ("a picture of one line", include_str!("../demo/line.b64")),
];
/// What the built-in demo says, where the checks ask for a text.
const DEMO_ANSWERS: &str = include_str!("../demo/answers.json");
/// Path of chat.
const CHAT: &str = "/v1/chat/completions";
/// Tokens that an answer may have. The real model thinks before it counts.
const MAX_TOKENS: u64 = 4096;
/// Of the demo, which never stops by itself.
const DEMO_MAX_TOKENS: u64 = 24;

/// What a check found, or what is wrong.
type Outcome = std::result::Result<String, String>;

/// A check of texts, by its name.
type Named = (&'static str, fn(&Check) -> Outcome);

/// The model, and what is expected of it.
struct Check {
    local: Local,
    demo: Option<Value>,
    pictures: bool,
}

/// Prints a line for every check; the last line is the verdict. Exit code 1 beyond one of them.
///
/// # Errors
/// Whatever is wrong with the checkpoint or the devices.
pub(crate) fn run(common: &Common, limits: &Limits) -> Result<ExitCode> {
    let source = Source::named(common.model.as_deref())?;
    let demo = serde_json::from_str(DEMO_ANSWERS).expect("the answers are JSON");
    let demo = source.is_demo().then_some(demo);
    let served = Served::load(
        common,
        limits,
        Loading { sequences: 4, reopens: false, prefixes: None },
        None,
    )?;
    let pictures = served.model.pictures.is_some() && served.engine.limits().pictures;
    let check = Check { local: served.local()?, demo, pictures };
    let mut failed = 0;
    for (name, outcome) in check.all() {
        let (word, detail) = match outcome {
            Ok(detail) => ("ok", detail),
            Err(problem) => ("FAILED", problem),
        };
        failed += u64::from(word == "FAILED");
        console::print(format_args!("{name:<24} {word:<6} {detail}\n"))?;
    }
    let verdict = if failed == 0 { "passed".to_owned() } else { format!("{failed} failed") };
    console::print(format_args!("requests: {verdict}\n"))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Check {
    fn all(&self) -> impl Iterator<Item = (&'static str, Outcome)> {
        let checks: [Named; 6] = [
            ("17 x 19", Self::arithmetic),
            ("the same, streamed", Self::streamed),
            ("the same, without drafts", Self::undrafted),
            ("every effort", Self::efforts),
            ("a tool call", Self::tool_call),
            ("a prompt again", Self::again),
        ];
        let texts = checks.into_iter().map(|(name, check)| (name, check(self)));
        texts.chain(PICTURES.map(|(name, picture)| (name, self.picture(name, picture))))
    }

    /// A greedy chat with these messages and fields.
    fn ask(&self, messages: &Value, more: &Value) -> LocalReply {
        let max_tokens = if self.demo.is_some() { DEMO_MAX_TOKENS } else { MAX_TOKENS };
        let mut body = json!({ "messages": messages, "temperature": 0, "max_tokens": max_tokens });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more.clone());
        }
        self.local.post(CHAT, &body)
    }

    /// The text of a reply, compared with what the demo is known to say under this name.
    fn text(&self, name: &str, reply: &LocalReply) -> Outcome {
        let text = content(&message(reply)?);
        if text.is_empty() {
            return Err(format!("said nothing: {}", reply.json()));
        }
        match &self.demo {
            Some(answers) if answers[name] != text.as_str() => {
                Err(format!("said {text:?}, not {}", answers[name]))
            }
            _ => Ok(text),
        }
    }

    fn arithmetic(&self) -> Outcome {
        let text = self.text("17 x 19", &self.ask(&question(), &no_thinking()))?;
        match self.demo.is_some() || text.trim() == "323" {
            true => Ok(format!("{text:?}")),
            false => Err(format!("said {text:?}, not 323")),
        }
    }

    fn streamed(&self) -> Outcome {
        let whole = content(&message(&self.ask(&question(), &no_thinking()))?);
        let mut more = no_thinking();
        more["stream"] = true.into();
        let events = self.ask(&question(), &more).events().ok_or("the stream broke off")?;
        let deltas = events.iter().filter_map(|event| {
            event["choices"][0]["delta"]["content"].as_str().map(str::to_owned)
        });
        let joined: String = deltas.collect();
        match joined == whole {
            true => Ok(format!("{} events", events.len())),
            false => Err(format!("{joined:?} streamed, {whole:?} whole")),
        }
    }

    fn undrafted(&self) -> Outcome {
        let whole = content(&message(&self.ask(&question(), &no_thinking()))?);
        let mut more = no_thinking();
        more["drafts"] = false.into();
        let plain = content(&message(&self.ask(&question(), &more))?);
        match plain == whole {
            true => Ok("the same text".to_owned()),
            false => Err(format!("{plain:?} without drafts, {whole:?} with")),
        }
    }

    fn efforts(&self) -> Outcome {
        for effort in [1, 25, 50, 75, 100] {
            let message = message(&self.ask(&question(), &json!({ "reasoning_effort": effort })))?;
            if message["reasoning_content"].as_str().is_none_or(str::is_empty) {
                return Err(format!("no reasoning at {effort}: {message}"));
            }
        }
        let message = message(&self.ask(&question(), &no_thinking()))?;
        if message["reasoning_content"].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(format!("reasoning at none: {message}"));
        }
        for effort in [json!(0), json!(101), json!("enormous")] {
            let reply = self.ask(&question(), &json!({ "reasoning_effort": effort }));
            if reply.status() != 400 || !reply.json().to_string().contains("effort") {
                return Err(format!("{effort} was not refused: {}", reply.json()));
            }
        }
        Ok("1 to 100 and none; others are refused".to_owned())
    }

    fn tool_call(&self) -> Outcome {
        let weather = json!({ "type": "function", "function": {
            "name": "get_weather", "description": "The weather in a city.", "strict": true,
            "parameters": {
                "type": "object", "properties": { "city": { "enum": ["Paris", "Rome"] } },
                "required": ["city"], "additionalProperties": false,
            },
        }});
        let ask =
            json!({ "role": "user", "content": "What is the weather in Paris? Use the tool." });
        let choice = json!({ "type": "function", "function": { "name": "get_weather" } });
        let mut more = no_thinking();
        more["tools"] = json!([weather]);
        let mut forced = more.clone();
        forced["tool_choice"] = choice;
        forced["max_tokens"] = 256.into();
        let called = message(&self.ask(&json!([ask]), &forced))?;
        let call = &called["tool_calls"][0];
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let city = arguments["city"].as_str().ok_or_else(|| format!("no call: {called}"))?;
        let result =
            json!({ "role": "tool", "tool_call_id": call["id"], "content": "sunny, 31 C" });
        let text = content(&message(&self.ask(&json!([ask, called, result]), &more))?);
        match text.is_empty() {
            true => Err("nothing was said of the result".to_owned()),
            false => Ok(format!("{city}; then {text:?}")),
        }
    }

    fn again(&self) -> Outcome {
        let mut text = String::new();
        let words = if self.demo.is_some() { 300 } else { 1000 };
        (0..words).for_each(|i| text.push_str(if i % 7 == 0 { "and so on. " } else { "the " }));
        let messages = json!([{ "role": "user", "content": format!("{text}\n{QUESTION}") }]);
        let (cold, warm) =
            (self.ask(&messages, &no_thinking()), self.ask(&messages, &no_thinking()));
        let cached = &warm.json()["usage"]["prompt_tokens_details"]["cached_tokens"];
        let (cold, warm) = (content(&message(&cold)?), content(&message(&warm)?));
        match (cold == warm, cached.as_u64().unwrap_or_default()) {
            (false, _) => Err(format!("{warm:?} again, {cold:?} at first")),
            (true, 0) => Ok("the same text; nothing of the prompt was kept".to_owned()),
            (true, cached) => Ok(format!("the same text, {cached} tokens from the cache")),
        }
    }

    fn picture(&self, name: &str, picture: &str) -> Outcome {
        if !self.pictures {
            return Ok("SKIPPED: the model was loaded without its vision tower".to_owned());
        }
        let url = format!("data:image/png;base64,{}", picture.trim());
        let content = json!([
            { "type": "image_url", "image_url": { "url": url } },
            { "type": "text", "text": "What is in the picture? Answer in one sentence." },
        ]);
        let reply = self.ask(&json!([{ "role": "user", "content": content }]), &no_thinking());
        Ok(format!("{:?}", self.text(name, &reply)?))
    }
}

/// The question of the model's card.
const QUESTION: &str = "What is 17 times 19? Answer with the integer only.";

fn question() -> Value {
    json!([{ "role": "user", "content": QUESTION }])
}

fn no_thinking() -> Value {
    json!({ "reasoning_effort": "none" })
}

/// The message of a reply that is none of an error.
fn message(reply: &LocalReply) -> std::result::Result<Value, String> {
    let body = reply.json();
    match reply.status() {
        200 => Ok(body["choices"][0]["message"].clone()),
        status => Err(format!("status {status}: {body}")),
    }
}

fn content(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}
