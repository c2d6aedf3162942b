//! The server from outside: it starts, answers, and stops when asked.

mod tandem;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tandem::{tandem, tandem_with_input};

/// As [`ask_with`], with the server's key.
fn ask(address: &str, request: &str, body: &str) -> (u16, String) {
    ask_with("x-api-key: hush\r\n", address, request, body)
}

/// One request on a connection of its own, with one more header; answers status and body.
fn ask_with(header: &str, address: &str, request: &str, body: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}");
    let kind = "Content-Type: application/json\r\n";
    write!(connection, "{head}{kind}Content-Length: {length}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn a_server_answers_until_it_is_asked_to_stop() {
    let (mut server, address) = start(
        &["--tool-call-parser", "deepseek_v41", "--enable-auto-tool-choice"],
        &[("TANDEM_API_KEY", "hush")],
    );
    assert_eq!(ask_with("", &address, "GET /ready", "").0, 200);
    let (status, refusal) = ask_with("", &address, "GET /v1/models", "");
    assert_eq!((status, refusal.contains("x-api-key")), (401, true), "{refusal}");
    let body = r#"{"model": "whale", "prompt": "Call me", "max_tokens": 4, "temperature": 0}"#;
    let (status, body) = ask(&address, "POST /v1/completions", body);
    assert_eq!(status, 200, "{body}");
    let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
    let text = reply["choices"][0]["text"].as_str().unwrap();
    assert_eq!(text, tandem(&["generate", "Call me", "-n", "4", "--temp", "0"]).ok());
    // What the device holds is told: at least the weights.
    let (_, metrics) = ask(&address, "GET /metrics", "");
    let memory = metrics.lines().filter(|line| line.starts_with("v41_memory_bytes{"));
    let bytes: u64 =
        memory.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert!(bytes > 10_000_000 && metrics.contains("purpose=\"layers.attn\""), "{metrics}");
    // And what computes, by the names that `kernels` lists.
    let listed = tandem(&["kernels", "--device", "reference"]).ok();
    let rows: Vec<_> =
        metrics.lines().filter_map(|line| line.strip_prefix("v41_kernel_info{op=\"")).collect();
    assert!(rows.len() > 20, "{metrics}");
    for row in rows {
        let op = row.split('"').next().unwrap();
        assert!(listed.contains(op), "{op} is not among\n{listed}");
    }
    // A picture shown here and on the terminal is the same question.
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens/picture.png");
    let url = format!("data:image/png;base64,{}", STANDARD.encode(fs::read(picture).unwrap()));
    let content = json!([
        { "type": "image_url", "image_url": { "url": url } },
        { "type": "text", "text": "What colour is it?" },
    ]);
    let body = json!({
        "messages": [{ "role": "user", "content": content }], "max_tokens": 8, "temperature": 0,
        "thinking": { "type": "disabled" },
    });
    let (status, body) = ask(&address, "POST /v1/chat/completions", &body.to_string());
    assert_eq!(status, 200, "{body}");
    let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
    let shown = format!("/image {picture}\nWhat colour is it?\n");
    let chat = tandem_with_input(&["chat", "--temp", "0", "-n", "8"], shown.as_bytes());
    let said = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(chat.output, format!("{said}\n"), "{}", chat.errors);
    terminate(&server);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// A server of the demo, and its address.
fn start(more: &[&str], variables: &[(&str, &str)]) -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .args(["serve", "--port", "0", "--served-model-name", "whale"])
        .args(more)
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (server, line.trim().strip_prefix("serving whale on http://").unwrap().to_owned())
}

/// Streams that have begun, each of so many tokens: none ends before.
fn begin(address: &str, streams: usize, tokens: u64) -> Vec<BufReader<TcpStream>> {
    // The token that ends a document never comes.
    let body = json!({
        "prompt": "Call me", "max_tokens": tokens, "stream": true, "logit_bias": { "1": -100 },
    });
    let body = body.to_string();
    let length = body.len();
    let open = |_| {
        let mut connection = TcpStream::connect(address).unwrap();
        let head = "POST /v1/completions HTTP/1.1\r\nHost: whale\r\nConnection: close\r\n";
        let kind = "Content-Type: application/json\r\n";
        write!(connection, "{head}{kind}Content-Length: {length}\r\n\r\n{body}").unwrap();
        BufReader::new(connection)
    };
    let mut open: Vec<_> = (0..streams).map(open).collect();
    for stream in &mut open {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the stream begins");
        }
    }
    open
}

fn terminate(server: &Child) {
    signal(server, "-TERM");
}

fn signal(server: &Child, which: &str) {
    let kill = Command::new("kill").args([which, &server.id().to_string()]).status().unwrap();
    assert!(kill.success());
}

/// The server's name of the bits that it answers with.
fn numerics(address: &str) -> String {
    let (status, metrics) = ask_with("", address, "GET /metrics", "");
    assert_eq!(status, 200, "{metrics}");
    let build = metrics.lines().find(|line| line.starts_with("v41_build_info{")).unwrap();
    let (_, after) = build.split_once("numerics=\"").unwrap();
    after.split_once('"').unwrap().0.to_owned()
}

#[test]
fn a_hangup_without_tls_is_nothing_and_a_bounded_cache_has_numerics_of_its_own() {
    let (mut exact, exact_address) = start(&[], &[]);
    let (mut bounded, bounded_address) = start(&["--prefix-cache", "bounded"], &[]);
    let name = numerics(&exact_address);
    signal(&exact, "-HUP");
    assert!(!name.is_empty() && !name.contains('+'), "{name}");
    assert_eq!(numerics(&bounded_address), format!("{name}+bounded"));
    assert!(takes_work(&exact_address));
    for server in [&mut exact, &mut bounded] {
        terminate(server);
        assert_eq!(server.wait().unwrap().code(), Some(0));
    }
}

/// A long prompt's answer, and how many of its tokens came from the cache.
fn continued(address: &str) -> (String, u64) {
    let prompt = "Call me whatever you like. ".repeat(40);
    let body = json!({ "prompt": prompt, "max_tokens": 6, "temperature": 0 }).to_string();
    let (status, body) = ask(address, "POST /v1/completions", &body);
    assert_eq!(status, 200, "{body}");
    let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
    let cached = &reply["usage"]["prompt_tokens_details"]["cached_tokens"];
    (reply["choices"][0]["text"].as_str().unwrap().to_owned(), cached.as_u64().unwrap())
}

/// One server leaves its prefix cache to the next, when it is asked to stop and, what it saved while
/// idle, when it is killed; another of other numerics does not take it.
#[test]
fn a_folder_keeps_prefixes_from_one_server_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prefixes");
    let path = path.to_str().unwrap();
    let kept = ["--prefix-cache-dir", path];
    let (mut first, address) = start(&kept, &[]);
    let (text, cached) = continued(&address);
    assert_eq!(cached, 0);
    let args = ["serve", "--port", "0", "--prefix-cache-dir", path];
    tandem(&args).refused(2, &["in use by another process", path]);
    terminate(&first);
    assert_eq!(first.wait().unwrap().code(), Some(0));

    let (mut second, address) = start(&kept, &[]);
    let (again, cached) = continued(&address);
    assert_eq!(again, text);
    assert!(cached >= 64, "{cached} tokens");
    second.kill().unwrap();
    second.wait().unwrap();

    let bounded = [&kept[..], &["--prefix-cache", "bounded"]].concat();
    let (mut third, address) = start(&bounded, &[]);
    assert_eq!(continued(&address).1, 0, "the numerics are others");
    let lines = || fs::read_to_string(folder.path().join("prefixes/prefixes.jsonl")).unwrap();
    let since = std::time::Instant::now();
    while lines().lines().count() < 2 {
        assert!(since.elapsed().as_secs() < 60, "nothing is saved while idle");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    third.kill().unwrap();
    third.wait().unwrap();
    let (mut fourth, address) = start(&bounded, &[]);
    assert!(continued(&address).1 > 0, "a killed server's");
    terminate(&fourth);
    assert_eq!(fourth.wait().unwrap().code(), Some(0));
    // A disk without room is no reason not to serve.
    let full = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", full.path().join("prefixes.new")).unwrap();
    let (mut fifth, address) = start(&["--prefix-cache-dir", full.path().to_str().unwrap()], &[]);
    assert_eq!(continued(&address), (text, 0));
    terminate(&fifth);
    assert_eq!(fifth.wait().unwrap().code(), Some(0));
    let off = ["serve", "--prefix-cache", "off", "--prefix-cache-dir", path];
    tandem(&off).refused(2, &["there is no prefix cache to keep"]);
}

/// Whether a server answers a request with anything but a 503.
fn takes_work(address: &str) -> bool {
    let Ok(mut connection) = TcpStream::connect(address) else { return false };
    let body = r#"{"prompt": "x", "max_tokens": 1}"#;
    let head = "POST /v1/completions HTTP/1.1\r\nHost: whale\r\nConnection: close\r\n";
    let kind = "Content-Type: application/json\r\nContent-Length: ";
    let mut reply = String::new();
    let sent = write!(connection, "{head}{kind}{}\r\n\r\n{body}", body.len());
    let read = sent.and_then(|()| connection.read_to_string(&mut reply));
    read.is_ok() && !reply.is_empty() && !reply.starts_with("HTTP/1.1 503")
}

fn rest(mut stream: BufReader<TcpStream>) -> String {
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    rest
}

#[test]
fn under_load_replies_end_before_the_server_does() {
    let (mut server, address) = start(&["--drain-timeout", "300"], &[]);
    let streams = begin(&address, 8, 60);
    terminate(&server);
    // New work is refused, by a server that says so or by one that listens no more.
    let start = std::time::Instant::now();
    while takes_work(&address) {
        assert!(start.elapsed().as_secs() < 60, "it goes on taking work");
    }
    for stream in streams {
        let rest = rest(stream);
        assert!(rest.contains("data: [DONE]"), "{rest}");
        assert!(rest.contains("\"finish_reason\":\"length\""), "{rest}");
    }
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn what_outlasts_the_drain_is_told_so() {
    let (mut server, address) = start(&["--drain-timeout", "1"], &[]);
    let streams = begin(&address, 3, 100_000);
    terminate(&server);
    for stream in streams {
        let rest = rest(stream);
        assert!(rest.contains("\"code\":\"shutting_down\"") && !rest.contains("[DONE]"), "{rest}");
    }
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn a_port_in_use_is_refused_before_loading() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    tandem(&["serve", "--port", &port]).refused(2, &["--port", &port, "choose another"]);
    tandem(&["serve", "--port", "70000"]).refused(2, &["--port", "70000"]);
    tandem(&["serve", "--reasoning-parser", "qwen3"]).refused(2, &["qwen3", "deepseek_v41"]);
    tandem(&["serve", "/no/such"]).refused(2, &["/no/such", "folder"]);
}
