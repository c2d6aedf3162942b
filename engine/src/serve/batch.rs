//! Requests of a file, in OpenAI's batch form, answered as the server would, without a network.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::local::{Local, LocalReply, Routes};
use super::random::random;
use crate::Result;
use crate::error::printable;

/// What a batch may ask.
const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/completions", "/v1/responses"];
/// How long a request waits that found no room.
const ROOM_INTERVAL: Duration = Duration::from_millis(20);

/// One request of a batch.
#[derive(Clone, Debug)]
pub struct BatchRequest {
    custom_id: String,
    path: &'static str,
    body: String,
}

impl BatchRequest {
    /// A line of a file: `{"custom_id": …, "method": "POST", "url": …, "body": {…}}`.
    ///
    /// # Errors
    /// What is wrong with the line, and what would be right. The body's fields are the server's to check.
    pub fn parse(line: &str) -> std::result::Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let fields = value.as_object().ok_or("not an object; write one a line")?;
        let known = ["custom_id", "method", "url", "body"];
        if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("{}: unknown field; remove it", printable(key)));
        }
        let text = |key: &str| {
            let value = fields.get(key).and_then(Value::as_str);
            value.ok_or_else(|| format!("{key}: must be a text"))
        };
        let custom_id = text("custom_id")?.to_owned();
        let (method, url) = (text("method")?, text("url")?);
        if method != "POST" {
            return Err(format!("method: {} is not POST", printable(method)));
        }
        let path = PATHS.into_iter().find(|path| *path == url).ok_or_else(|| {
            format!("url: {} is not of a batch; {} are", printable(url), PATHS.join(", "))
        })?;
        let body = fields.get("body").filter(|body| body.is_object());
        let body = body.ok_or("body: must be an object")?;
        if body["stream"] == true {
            return Err("body.stream: a batch is not streamed; leave it out".to_owned());
        }
        Ok(Self { custom_id, path, body: body.to_string() })
    }

    /// What tells the request from the others.
    pub fn custom_id(&self) -> &str {
        &self.custom_id
    }

    /// The line that tells the answer.
    fn line(&self, reply: &LocalReply) -> String {
        json!({
            "id": format!("batch_req_{:016x}{:016x}", random(), random()),
            "custom_id": self.custom_id,
            "response": { "status_code": reply.status(), "body": reply.json() },
            "error": null,
        })
        .to_string()
    }

    /// The line, once there is room for the request; `None` when the engine is gone.
    async fn answer(self, routes: Routes) -> Option<String> {
        loop {
            let reply = routes.post(self.path, &self.body).await;
            match reply.status() {
                429 => tokio::time::sleep(ROOM_INTERVAL).await,
                503 => return None,
                _ => return Some(self.line(&reply)),
            }
        }
    }
}

/// Answers all requests, twice as many at a time as the engine runs; `answered` is given a line for each, as they are
/// done. A request that is refused has a line that says why, and holds nobody up.
///
/// # Errors
/// What `answered` returns, which ends the batch; when the engine cannot go on, what was wrong with it,
/// [`crate::Error::Internal`] when its thread panicked.
pub fn answer_batch(
    local: &Local,
    requests: Vec<BatchRequest>,
    mut answered: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    local.block_on(async {
        let (mut requests, mut under_way) = (requests.into_iter(), JoinSet::new());
        loop {
            while under_way.len() < local.at_once {
                let Some(request) = requests.next() else { break };
                under_way.spawn(request.answer(local.routes().clone()));
            }
            let Some(line) = under_way.join_next().await else { return Ok(()) };
            let line = line.expect("handlers do not panic");
            answered(&line.ok_or_else(|| local.fault())?)?;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_requests_say_why() {
        let line = |id: &str, method: &str, url: &str, body: Value| {
            json!({ "custom_id": id, "method": method, "url": url, "body": body }).to_string()
        };
        let chat = PATHS[0];
        assert_eq!(
            BatchRequest::parse(&line("a", "POST", chat, json!({}))).unwrap().custom_id(),
            "a"
        );
        for (line, part) in [
            ("{".to_owned(), "JSON"),
            ("[]".to_owned(), "object"),
            (r#"{"custom_id": 3}"#.to_owned(), "custom_id"),
            (r#"{"colour": 3}"#.to_owned(), "colour"),
            (line("a", "GET", chat, json!({})), "POST"),
            (line("a", "POST", "/v1/models", json!({})), "/v1/completions"),
            (line("a", "POST", chat, json!([])), "body"),
            (line("a", "POST", chat, json!({ "stream": true })), "stream"),
        ] {
            let problem = BatchRequest::parse(&line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
