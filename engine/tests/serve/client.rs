//! A client that does exactly what a test says, wrong things too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::server::PATIENCE;

/// A connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What a stream of events said.
#[derive(Clone, Debug, Default)]
pub struct Streamed {
    /// Every object but errors.
    pub chunks: Vec<Value>,
    /// The error object, if there was one.
    pub error: Option<Value>,
    /// `[DONE]` came last.
    pub done: bool,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends bytes; a server that hung up is not an error.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Sends a request with a JSON body.
    pub fn send_request(&mut self, method: &str, path: &str, body: Option<&[u8]>) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n");
        if let Some(body) = body {
            let length = body.len();
            head += &format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        }
        self.send((head + "\r\n").as_bytes());
        self.send(body.unwrap_or_default());
    }

    pub fn request(mut self, method: &str, path: &str, body: Option<&[u8]>) -> Reply {
        self.send_request(method, path, body);
        self.reply()
    }

    /// Reads a whole response.
    #[track_caller]
    pub fn reply(&mut self) -> Reply {
        let (status, headers) = self.head();
        let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let mut body = Vec::new();
        if let Some(length) = header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body).unwrap();
        } else if header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        } else {
            self.stream.read_to_end(&mut body).unwrap();
        }
        Reply { status, headers, body }
    }

    /// Reads the status and the headers.
    #[track_caller]
    pub fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let status = self.line();
        let status = status.split(' ').nth(1).expect("a status line").parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { return (status, headers) };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    /// Reads one chunk of a chunked body; `None` at its end or when the server hung up.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line(), 16).ok()?;
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk).ok()?;
        self.line();
        (size > 0).then_some(chunk)
    }

    #[track_caller]
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = String::from_utf8(self.body.clone()).expect("bodies are UTF-8");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body of a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The error of a refusal: its `param` and message. Checks the shape.
    #[track_caller]
    pub fn refusal(&self, status: u16) -> (Option<String>, String) {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{body}");
        let error = &self.json()["error"];
        let message = error["message"].as_str().expect("errors have a message").to_owned();
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(error["type"].is_string(), "{body}");
        assert!(error["code"].is_string() || error["code"].is_null(), "{body}");
        (error["param"].as_str().map(str::to_owned), message)
    }

    /// The events of a success.
    #[track_caller]
    pub fn events(&self) -> Streamed {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        let text = String::from_utf8(self.body.clone()).expect("streams are UTF-8");
        let mut streamed = Streamed::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            assert!(!streamed.done && streamed.error.is_none(), "something behind the end: {line}");
            if line == "[DONE]" {
                streamed.done = true;
                continue;
            }
            let value: Value = serde_json::from_str(line).unwrap();
            if value.get("error").is_some() {
                streamed.error = Some(value["error"].clone());
            } else {
                streamed.chunks.push(value);
            }
        }
        streamed
    }
}
