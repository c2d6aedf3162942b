//! Broken bodies (C079).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Connection;
use crate::scripted::Scripted;
use crate::server::TestServer;
use crate::support::{chat, completion, ids};

fn server() -> TestServer {
    TestServer::with(Scripted::saying(ids("Call me")), |options| {
        options.body.bytes = 1 << 20;
        options.body.timeout = Duration::from_millis(700);
    })
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn c079_broken_bodies() {
    let server = server();
    let with_message =
        |more: &str| format!(r#"{{"messages":[{{"role":"user","content":"Hi"}}],{more}}}"#);
    let duplicate = with_message(r#""seed":1,"seed":2"#);
    let nested_duplicate = with_message(r#""metadata":{"a":1,"a":2}"#);
    let nested = "[".repeat(1 << 19);
    for body in [
        &b""[..],
        b"{\"model\": ;",
        b"\xFF",
        b"{\"model\": \"\xFF\"}",
        b"[]",
        b"null",
        b"{} {}",
        duplicate.as_bytes(),
        nested_duplicate.as_bytes(),
        nested.as_bytes(),
    ] {
        for path in [CHAT, "/v1/completions"] {
            server.connect().request("POST", path, Some(body)).refusal(400);
        }
    }
    assert!(
        server
            .connect()
            .request("POST", CHAT, Some(duplicate.as_bytes()))
            .refusal(400)
            .1
            .contains("seed")
    );
    server.chat(&chat(json!({}))).ok();
}

#[test]
fn c079_a_huge_body() {
    let server = server();
    let huge = vec![b'['; 20 << 20];
    let (_, message) = server.connect().request("POST", CHAT, Some(&huge)).refusal(413);
    assert!(message.contains("1048576"), "{message}");
    // The same without saying how long it will be.
    let mut connection = server.connect();
    let head = "POST /v1/completions HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    connection.send(head.as_bytes());
    for _ in 0..40 {
        connection.send(format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16)).as_bytes());
    }
    connection.send(b"0\r\n\r\n");
    connection.reply().refusal(413);
    server.chat(&chat(json!({}))).ok();
}

/// What a client that waits to be asked for its body, or has more than would be read, announces is refused
/// at once, and one that sends less than it announced is told what is wrong with it.
#[test]
fn c079_an_announced_body() {
    let server = server();
    let announce = |bytes: u64, more: &str| {
        let mut connection = server.connect();
        let kind = "content-type: application/json\r\n";
        let head = format!("POST {CHAT} HTTP/1.1\r\nhost: test\r\n{kind}{more}content-length: ");
        connection.send(format!("{head}{bytes}\r\n\r\n").as_bytes());
        connection.reply().refusal(413);
    };
    // Before the time that bodies have.
    let start = Instant::now();
    announce(2 << 20, "expect: 100-continue\r\n");
    announce(1 << 40, "");
    assert!(start.elapsed() < Duration::from_millis(700));
    announce(2 << 20, "");
}

#[test]
fn c079_another_encoding() {
    let server = server();
    let mut connection = server.connect();
    let kind = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: test\r\n{kind}content-length: 2\r\n\r\n{{}}");
    connection.send(head.as_bytes());
    let (_, message) = connection.reply().refusal(400);
    assert!(message.contains("content-encoding"), "{message}");
}

#[test]
fn c079_null_is_as_absent() {
    let server = server();
    let body = completion(json!({
        "max_tokens": null, "stream": null, "stop": null, "n": null, "logprobs": null, "seed": null,
        "stream_options": null, "logit_bias": null, "user": null, "model": null, "echo": null,
    }));
    assert_eq!(server.completion(&body).ok()["choices"][0]["text"], "Call me");
}

#[test]
fn c079_another_content_type() {
    let server = server();
    for content_type in ["content-type: text/plain\r\n", ""] {
        let mut connection = server.connect();
        connection.send(
            format!(
                "POST {CHAT} HTTP/1.1\r\nhost: test\r\n{content_type}content-length: 2\r\n\r\n{{}}"
            )
            .as_bytes(),
        );
        let (_, message) = connection.reply().refusal(400);
        assert!(message.contains("application/json"), "{message}");
    }
    let body = chat(json!({})).to_string();
    let mut connection = server.connect();
    let length = body.len();
    connection.send(
        format!(
            "POST {CHAT} HTTP/1.1\r\nhost: test\r\nContent-Type: Application/JSON; charset=utf-8\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .as_bytes(),
    );
    connection.reply().ok();
}

#[test]
fn c079_a_slow_body_does_not_hold_up_others() {
    let server = server();
    let mut slow = server.connect();
    slow.send(
        format!(
            "POST {CHAT} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
             content-length: 1000\r\n\r\n"
        )
        .as_bytes(),
    );
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        slow.send(b"{");
        server.chat(&chat(json!({}))).ok();
        std::thread::sleep(Duration::from_millis(50));
    }
    slow.reply().refusal(408);
}

#[test]
fn c079_an_old_protocol() {
    let server = server();
    for stream in [false, true] {
        let body = chat(json!({ "stream": stream })).to_string();
        let length = body.len();
        let mut connection = server.connect();
        connection.send(
            format!(
                "POST {CHAT} HTTP/1.0\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        let reply = connection.reply();
        if stream {
            assert_eq!(reply.events().joined().text, "Call me");
        } else {
            assert_eq!(reply.ok()["choices"][0]["message"]["content"], "Call me");
        }
    }
}

/// A large body that arrives but for its end.
fn stalled(server: &TestServer, bytes: usize) -> Connection {
    let mut connection = server.connect();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {bytes}\r\n\r\n"
    );
    connection.send(head.as_bytes());
    connection.send(" ".repeat(bytes - 1).as_bytes());
    connection
}

#[test]
fn bodies_together_are_bounded_and_small_ones_find_room() {
    let server = TestServer::with(Scripted::saying(ids("Call me")), |options| {
        options.body.bytes = 3 << 20;
        options.body.held_bytes = 8 << 20;
    });
    let large = chat(json!({
        "messages": [{ "role": "user", "content": "whale ".repeat((3 << 19) / 6) }],
    }));
    // Each gives its room back: together they would not have found it.
    for _ in 0..9 {
        server.chat(&large).refusal(400);
    }
    let slow = [stalled(&server, 3 << 20), stalled(&server, 3 << 20)];
    server.wait_until("there is no room", |server| server.chat(&large).status == 429);
    let reply = server.chat(&large);
    assert_eq!(reply.json()["error"]["code"], "overloaded");
    reply.refusal(429);
    let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    let trickling: Vec<_> = (0..100).map(|_| stalled(&server, 2)).collect();
    for _ in 0..3 {
        server.chat(&chat(json!({}))).ok();
    }
    drop((slow, trickling));
    server.wait_until("there is room again", |server| server.chat(&large).status == 400);
}
