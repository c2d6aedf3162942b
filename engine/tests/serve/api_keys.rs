//! Servers that ask for a key.

use serde_json::json;
use tandem_engine::serve::ApiKeys;

use crate::client::Reply;
use crate::scripted::Scripted;
use crate::server::TestServer;
use crate::support::{chat, ids};

fn server() -> TestServer {
    let keys = ApiKeys::new(["one", "other"]);
    TestServer::with(Scripted::saying(ids("Call me")), |options| options.api_keys = keys)
}

/// A request with one more header.
fn ask(server: &TestServer, method: &str, path: &str, header: &str, body: &str) -> Reply {
    let mut connection = server.connect();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n");
    connection.send(format!("{head}{header}content-length: {length}\r\n\r\n{body}").as_bytes());
    connection.reply()
}

#[test]
fn only_whoever_names_a_key_is_answered() {
    let server = server();
    let body = chat(json!({})).to_string();
    let chat = |header: &str| ask(&server, "POST", "/v1/chat/completions", header, &body);
    for header in
        ["", "authorization: Bearer on\r\n", "x-api-key: one1\r\n", "authorization: one\r\n"]
    {
        let (_, message) = chat(header).refusal(401);
        assert!(message.contains("x-api-key"), "{message}");
        assert!(!message.contains("one1"), "{message}");
    }
    assert_eq!(server.seen.lock().unwrap().jobs.len(), 0);
    for header in ["authorization: Bearer one\r\n", "x-api-key: other\r\n"] {
        chat(header).ok();
    }
}

#[test]
fn every_path_but_those_of_health_asks_for_a_key() {
    let server = server();
    for path in ["/v1/models", "/version", "/no/such", "/tokenize"] {
        server.get(path).refusal(401);
    }
    server.get("/health").ok();
    server.get("/ready").ok();
    ask(&server, "GET", "/v1/models", "authorization: Bearer one\r\n", "").ok();
}

#[test]
fn a_refusal_has_the_shape_of_the_api() {
    let server = server();
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let reply = ask(&server, "POST", path, "", "{}");
        assert_eq!(reply.status, 401);
        assert_eq!(reply.json()["type"], "error");
        assert_eq!(reply.json()["error"]["type"], "authentication_error");
    }
}
