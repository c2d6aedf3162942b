//! Ids of requests, and what is told of them.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use crate::client::Reply;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, ids, merge};

/// Lines of the log, as JSON.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Of this process; other tests write too.
    fn of_all() -> Self {
        static LINES: std::sync::OnceLock<Lines> = std::sync::OnceLock::new();
        let begin = || {
            let lines = Self::default();
            let to = lines.clone();
            tracing_subscriber::fmt()
                .json()
                .flatten_event(true)
                .with_max_level(LevelFilter::DEBUG)
                .with_writer(move || to.clone())
                .init();
            lines
        };
        LINES.get_or_init(begin).clone()
    }

    /// The one line of a request, once it is there.
    fn of(&self, server: &TestServer, id: &str) -> Value {
        let mut found = vec![];
        server.wait_until(&format!("a line of {id}"), |_| {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            found = lines.filter(|line| line["request_id"] == id).collect();
            !found.is_empty()
        });
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn hold(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.0.lock().unwrap()).contains(text)
    }
}

/// A post with more headers.
fn post(server: &TestServer, path: &str, headers: &str, body: &Value) -> Reply {
    let (mut connection, body) = (server.connect(), body.to_string());
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n");
    connection.send(format!("{head}{headers}content-length: {length}\r\n\r\n{body}").as_bytes());
    connection.reply()
}

#[test]
fn every_answer_names_its_request() {
    let server = TestServer::of(Scripted::saying(ids("Call me")));
    let body = chat(json!({}));
    let reply = post(&server, "/v1/chat/completions", "x-request-id: mine-1\r\n", &body);
    assert_eq!((reply.status, reply.header("x-request-id")), (200, Some("mine-1")));
    let mut made = vec![];
    for (path, body) in
        [("/v1/chat/completions", &body), ("/no/such", &body), ("/v1/messages", &json!({ "x": 1 }))]
    {
        let reply = post(&server, path, "x-request-id: not mine\r\n", body);
        let id = reply.header("x-request-id").unwrap().to_owned();
        assert!(id.starts_with("req_") && !made.contains(&id), "{id}");
        if reply.status != 200 {
            let json = reply.json();
            let told = json["error"].get("request_id").or(json.get("request_id"));
            assert_eq!(told.and_then(Value::as_str), Some(&*id), "{json}");
        }
        assert_eq!(reply.header("request-id").is_some(), path == "/v1/messages");
        made.push(id);
    }
}

#[test]
fn a_request_has_one_line_with_its_counts() {
    let lines = Lines::of_all();
    let said = ids("Call me Ishmael");
    let mut scripted = Scripted::new(move |_| Script {
        cached_tokens: 3,
        ..Script::new(said.clone(), Then::Stop)
    });
    scripted.step_time = Duration::from_millis(3);
    let server = TestServer::of(scripted);
    for (id, stream) in [("whole-1", false), ("stream-1", true)] {
        let mut body = chat(json!({ "stream": stream }));
        merge(
            &mut body,
            json!({ "messages": [{ "role": "user", "content": "a secret question" }] }),
        );
        let reply = post(
            &server,
            "/v1/chat/completions",
            &format!("x-request-id: {id}\r\nauthorization: Bearer hushhush\r\n"),
            &body,
        );
        assert_eq!(reply.status, 200);
        let line = lines.of(&server, id);
        assert_eq!(
            (&line["method"], &line["path"], &line["status"]),
            (&json!("POST"), &json!("/v1/chat/completions"), &json!(200))
        );
        assert_eq!(line["level"], "INFO");
        assert_eq!(
            (&line["cached_tokens"], &line["output_tokens"]),
            (&json!(3), &json!(ids("Call me Ishmael").len()))
        );
        assert!(line["prompt_tokens"].as_u64().unwrap() > 3, "{line}");
        let (first, all) = (line["first_token_ms"].as_f64().unwrap(), line["ms"].as_f64().unwrap());
        assert!(0.0 < first && first < all, "{line}");
        assert!(line.get("client").is_none() && line.get("error").is_none(), "{line}");
    }
    for never in ["secret question", "hushhush", "Ishmael"] {
        assert!(!lines.hold(never), "{never}");
    }
}

#[test]
fn lines_tell_of_refusals_failures_and_clients_that_hang_up() {
    let lines = Lines::of_all();
    let server = TestServer::of(Scripted::new(|job| match job.max_tokens {
        5 => Script::new(ids("Call me"), Then::Fail("no numbers")),
        _ => Script::new(ids("Call me"), Then::Again),
    }));
    let ask = |id: &str, more: Value| {
        post(&server, "/v1/chat/completions", &format!("x-request-id: {id}\r\n"), &chat(more))
    };
    ask("refused-1", json!({ "strange": 1 })).refusal(400);
    let line = lines.of(&server, "refused-1");
    assert_eq!((&line["status"], &line["error"]), (&json!(400), &json!("unknown_parameter")));
    ask("failed-1", json!({ "max_tokens": 5 })).refusal(500);
    let line = lines.of(&server, "failed-1");
    assert_eq!((&line["level"], &line["error"]), (&json!("WARN"), &json!("generation_failed")));
    let reply = ask("broke-off-1", json!({ "max_tokens": 5, "stream": true }));
    assert_eq!(reply.events().error.unwrap()["request_id"], "broke-off-1");
    let line = lines.of(&server, "broke-off-1");
    assert_eq!((&line["status"], &line["error"]), (&json!(200), &json!("generation_failed")));
    let mut connection = server.connect();
    let body = chat(json!({ "stream": true, "max_tokens": 4000 })).to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\nx-request-id: gone-1\r\n";
    connection.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    connection.head();
    connection.chunk();
    drop(connection);
    assert_eq!(lines.of(&server, "gone-1")["client"], "hung up");
}
