//! Clients and devices at their worst.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tandem_engine::exec::{
    DraftLists, Drafter, Engine, Forward, Geometry, Sample, Sampled, StepLists,
};
use tandem_engine::serve::{EngineHandle, Sequences, ServerOptions};
use tandem_engine::{Error, Result};

use crate::engine_support::{Drafts, FakeModel, options};
use crate::scripted::{Script, Scripted, Then};
use crate::server::{PATIENCE, TestServer};
use crate::support::{chat, completion, ids, tokenizer};

const CHAT: &str = "/v1/chat/completions";
const PAGES: u64 = 1024;

/// A chat request as bytes.
fn request(more: serde_json::Value) -> Vec<u8> {
    let body = chat(more).to_string();
    let length = body.len();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

#[track_caller]
fn assert_well(server: &TestServer) {
    server.wait_until_free(PAGES);
    server.wait_until("no place is held", |server| {
        server.get("/health").ok()["requests_under_way"] == 0
    });
    let reply = server.chat(&chat(json!({ "max_tokens": 2 }))).ok();
    assert_eq!(reply["usage"]["completion_tokens"], 2);
}

/// Of the request: nothing of what has arrived holds anything when the rest does not come.
#[test]
fn a_client_that_vanishes_at_any_byte_it_sends() {
    let server =
        TestServer::of(Scripted::new(|_| Script::new(ids("Call me Ishmael."), Then::Again)));
    let request = request(json!({ "max_tokens": 3000, "stream": true }));
    for sent in 0..=request.len() {
        server.connect().send(&request[..sent]);
    }
    assert_well(&server);
}

/// Of the reply, streamed and whole.
#[test]
fn a_client_that_vanishes_at_any_byte_it_gets() {
    let mut scripted = Scripted::new(|_| Script::new(ids("Call me Ishmael."), Then::Again));
    scripted.step_time = Duration::from_micros(100);
    let server = TestServer::of(scripted);
    for stream in [true, false] {
        let request =
            request(json!({ "max_tokens": if stream { 3000 } else { 3 }, "stream": stream }));
        for taken in (0..1500).step_by(if stream { 3 } else { 1 }).take(500) {
            let mut connection = TcpStream::connect(server.address).unwrap();
            connection.set_read_timeout(Some(PATIENCE)).unwrap();
            connection.write_all(&request).unwrap();
            let mut reply = vec![0; taken];
            let mut filled = 0;
            while filled < taken {
                match connection.read(&mut reply[filled..]).unwrap() {
                    0 => break,
                    more => filled += more,
                }
                if !stream && reply.ends_with(b"}}") {
                    break;
                }
            }
        }
    }
    assert_well(&server);
}

/// What is no HTTP, or too much of it, ends its own connection.
#[test]
fn malformed_heads_end_their_connections() {
    let server = TestServer::of(Scripted::new(|_| Script::new(ids("Call me"), Then::Again)));
    let long = format!("GET /health HTTP/1.1\r\nhost: test\r\nx: {}\r\n\r\n", "y".repeat(2 << 20));
    let many = format!("GET /health HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    let target = format!("GET /{} HTTP/1.1\r\nhost: test\r\n\r\n", "z".repeat(1 << 20));
    let post = |more: &str| {
        format!(
            "POST {CHAT} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n{more}\r\n"
        )
    };
    for head in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        vec![0xff; 4096],
        b"GET\r\n\r\n".to_vec(),
        b"GET /health HTTP/9.9\r\n\r\n".to_vec(),
        b"GET /health HTTP/1.1\r\nno colon\r\n\r\n".to_vec(),
        b"GET /health HTTP/1.1\r\nhost: test\r\nx: \x00\r\n\r\n".to_vec(),
        post("content-length: -1\r\n").into_bytes(),
        post("content-length: 99999999999999999999999\r\n").into_bytes(),
        post("content-length: 2\r\ncontent-length: 3\r\n").into_bytes(),
        post("transfer-encoding: chunked\r\n").into_bytes().into_iter().chain(*b"zz\r\n").collect(),
        long.into_bytes(),
        many.into_bytes(),
        target.into_bytes(),
    ] {
        let mut connection = TcpStream::connect(server.address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server may hang up before it has all.
        let _ = connection.write_all(&head);
        let mut answer = Vec::new();
        let ended = connection.read_to_end(&mut answer);
        let start = String::from_utf8_lossy(&head[..head.len().min(60)]).into_owned();
        let waits = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!waits, "it waits for more of {start:?}");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{start:?}: {answer}");
    }
    assert_well(&server);
}

/// A head that does not come is not waited for, nor is a client that takes nothing: its place goes to
/// others while its connection is still open.
#[test]
fn clients_that_stall_lose_their_connections() {
    let scripted = Scripted::new(|_| Script::new(ids("Call me Ishmael. "), Then::Again));
    let server = TestServer::with(scripted, |options| {
        options.connections.head_timeout = Duration::from_millis(300);
        options.connections.stall_timeout = Duration::from_millis(300);
    });
    let request = request(json!({ "max_tokens": 4000, "stream": true, "n": 8 }));
    let mut waits = [&b""[..], b"G", b"GET /health HTTP/1.1\r\nhost: te"].map(|head| {
        let mut connection = TcpStream::connect(server.address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection.write_all(head).unwrap();
        connection
    });
    for connection in &mut waits {
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
    let mut takes_nothing = TcpStream::connect(server.address).unwrap();
    takes_nothing.write_all(&request).unwrap();
    server.wait_until("it has a place", |server| {
        server.get("/health").ok()["requests_under_way"] == 8
    });
    server
        .wait_until("it has none", |server| server.get("/health").ok()["requests_under_way"] == 0);
    drop(takes_nothing);
    assert_well(&server);
}

/// All are answered: those for whom there are places with a reply, the others at once with a 429.
#[test]
fn a_flood_of_1000_connections() {
    let said = tokenizer().encode("Call me Ishmael.").unwrap();
    let mut scripted = Scripted::new(move |_| Script::new(said.clone(), Then::Again));
    scripted.step_time = Duration::from_millis(1);
    let server = TestServer::with(scripted, |options| options.max_queued_requests = 56);
    // Open, and silent or cut short, while the others are served.
    let idle: Vec<_> = (0..300)
        .map(|number| {
            let mut connection = server.connect();
            connection.send(&request(json!({}))[..number % 190]);
            connection
        })
        .collect();
    let request = request(json!({ "max_tokens": 20 }));
    let mut open: Vec<_> = (0..1000).map(|_| server.connect()).collect();
    for connection in &mut open {
        connection.send(&request);
    }
    let (served, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for part in open.chunks_mut(125) {
            scope.spawn(|| {
                for connection in part {
                    let reply = connection.reply();
                    match reply.status {
                        200 => {
                            assert_eq!(reply.ok()["usage"]["completion_tokens"], 20);
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => {
                            reply.refusal(429);
                            assert!(reply.header("retry-after").is_some());
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let (served, refused) = (served.into_inner(), refused.into_inner());
    println!("{served} served, {refused} told to come back");
    assert!(served >= 64 && served + refused == 1000);
    drop(idle);
    assert_well(&server);
}

/// A device that is lost at its fifth step, and slow before.
struct Lost {
    model: FakeModel,
    steps: u64,
}

impl Lost {
    /// An engine over it, or over one that is never lost.
    fn engine(steps: u64) -> Sequences<Self> {
        let mut model = FakeModel::new(Drafts::Right);
        (model.geometry.vocab, model.geometry.context_tokens) = (2000, 4096);
        model.thorough = false;
        Sequences::new(Engine::new(Self { model, steps }, options()).unwrap(), vec![])
    }
}

impl Forward for Lost {
    fn geometry(&self) -> &Geometry {
        self.model.geometry()
    }
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        self.steps += 1;
        std::thread::sleep(Duration::from_millis(20));
        if (5..100).contains(&self.steps) {
            return Err(device_lost());
        }
        self.model.step(lists, samples)
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        self.model.draft(lists, drafters)
    }
}

fn device_lost() -> Error {
    tandem_hal::Error::DeviceLost { last_op: "gemm.mxfp8".to_owned() }.into()
}

/// Every request under way hears of it, no new one is taken, and the server ends with the device's
/// own exit code, for whoever restarts it.
#[test]
fn a_lost_device_fails_requests_and_ends_the_server() {
    let engine = EngineHandle::spawn(Lost::engine(0)).unwrap();
    let server = TestServer::around(engine, ServerOptions::new("demo"));
    assert_eq!(server.get("/ready").ok()["status"], "ready");
    let body = |stream| completion(json!({ "prompt": [5, 6], "stream": stream }));
    std::thread::scope(|scope| {
        let whole = scope.spawn(|| server.completion(&body(false)));
        let streamed = server.completion(&body(true)).events();
        assert_eq!(streamed.error.unwrap()["code"], "device_lost");
        assert!(!streamed.done);
        let whole = whole.join().unwrap();
        assert_eq!(whole.json()["error"]["code"], "device_lost");
        let (_, message) = whole.refusal(503);
        assert!(message.contains("gemm.mxfp8") && message.contains("restarted"), "{message}");
    });
    let engine = server.engine.clone();
    let error = server.join().unwrap_err();
    assert!(matches!(error, Error::Device(_)), "{error}");
    assert_eq!(error.exit_code(), 5);
    assert!(!engine.is_alive());
}

/// Those under way fail, new ones are refused until it is open again, and then it is as if nothing had
/// been. The first attempt fails.
#[test]
fn a_lost_device_is_opened_again() {
    let (gate, opens) = std::sync::mpsc::channel();
    let engine = EngineHandle::spawn_reopening(Lost::engine(0), move |lost| {
        assert!(lost.to_string().contains("gemm.mxfp8"), "{lost}");
        opens.recv().unwrap()
    });
    let server = TestServer::around(engine.unwrap(), ServerOptions::new("demo"));
    let body = completion(json!({ "prompt": [5, 6], "max_tokens": 40 }));
    let lost = server.completion(&body);
    assert_eq!(lost.json()["error"]["code"], "device_lost");
    assert!(lost.refusal(503).1.contains("send the request again later"));
    assert_eq!(server.get("/ready").json()["error"]["code"], "device_lost");
    assert_eq!(server.get("/health").ok()["status"], "ok");
    assert_eq!(server.completion(&body).json()["error"]["code"], "device_lost");
    gate.send(Err(device_lost())).unwrap();
    gate.send(Ok(Lost::engine(1000))).unwrap();
    server.wait_until("it is open again", |server| server.get("/ready").status == 200);
    let reply = server.completion(&body).ok();
    assert_eq!(reply["usage"]["completion_tokens"], 40);
    server.wait_until("nothing is under way", |server| {
        server.get("/health").ok()["requests_under_way"] == 0
    });
    server.stop().unwrap();
}

/// What waiting does not cure ends the server at once.
#[test]
fn a_device_that_cannot_be_used_again_ends_the_server() {
    let engine = EngineHandle::spawn_reopening(Lost::engine(0), |_| {
        Err(Error::Internal { invariant: "the second device is another".to_owned() })
    });
    let server = TestServer::around(engine.unwrap(), ServerOptions::new("demo"));
    let lost = server.completion(&completion(json!({ "prompt": [5, 6], "max_tokens": 40 })));
    assert_eq!(lost.json()["error"]["code"], "device_lost");
    let error = server.join().unwrap_err();
    assert_eq!(error.exit_code(), 70);
}

/// While replies are still being taken, the server lives and says that it is not ready.
#[test]
fn a_stopped_engine_is_not_ready() {
    let said = ids("Call me Ishmael. ");
    let server = TestServer::of(Scripted::new(move |job| {
        let then = if job.max_tokens == 99 { Then::Panic } else { Then::Again };
        Script::new(said.clone(), then)
    }));
    // Its reply does not fit what the system buffers, so its place is held until it is read.
    let mut lazy = server.connect();
    let long = request(json!({ "max_tokens": 4000, "stream": true, "n": 8 }));
    lazy.send(&long);
    server.wait_until("it runs", |server| server.engine.load().running > 0);
    let streamed = server.chat(&chat(json!({ "max_tokens": 99, "stream": true }))).events();
    assert_eq!(streamed.error.unwrap()["code"], "engine_stopped");
    server.wait_until("it is not ready", |server| server.get("/ready").status == 503);
    assert_eq!(server.get("/health").status, 503);
    drop(lazy);
    assert_eq!(server.join().unwrap_err().exit_code(), 70);
}
