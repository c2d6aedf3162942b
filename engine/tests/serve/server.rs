//! A server on a port of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tandem_engine::Result;
use tandem_engine::model::v41::vision_tower::picture_limits;
use tandem_engine::serve::{EngineHandle, ServedModel, ServedPictures, Server, ServerOptions};
use tokio::sync::oneshot;

use crate::client::{Connection, Reply};
use crate::model_support::demo_config;
use crate::scripted::{Scripted, Seen};
use crate::support::tokenizer;

/// Longest that anything may take.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server that lives as long as the value.
pub struct TestServer {
    pub address: SocketAddr,
    pub engine: EngineHandle,
    pub seen: Arc<Mutex<Seen>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl TestServer {
    /// A server of a scripted engine.
    pub fn of(scripted: Scripted) -> Self {
        Self::with(scripted, |_| {})
    }

    /// As [`TestServer::of`] with other options.
    pub fn with(scripted: Scripted, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let seen = Arc::clone(&scripted.seen);
        let engine = EngineHandle::spawn(scripted).unwrap();
        let mut options = ServerOptions::new("demo");
        change(&mut options);
        let mut server = Self::around(engine, options);
        server.seen = seen;
        server
    }

    /// A server around any engine that speaks the demo tokenizer's ids.
    pub fn around(engine: EngineHandle, options: ServerOptions) -> Self {
        let limits = picture_limits(&demo_config()).unwrap();
        let pictures = Some(ServedPictures { image_token_id: 2038, limits });
        let model = ServedModel { tokenizer: Arc::clone(tokenizer()), pictures };
        let server = Server::new(engine.clone(), model, options);
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let stopped = async {
                    let _ = stopped.await;
                };
                server.run(listener, stopped).await
            })
        });
        let address = told.recv_timeout(PATIENCE).unwrap();
        let (stop, thread) = (Some(stop), Some(thread));
        Self { address, engine, seen: Arc::default(), stop, thread }
    }

    /// Asks the server to stop, without waiting.
    pub fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops the server and waits; what it ended with.
    pub fn stop(mut self) -> Result<()> {
        self.ask_to_stop();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits until the server ends by itself; what it ended with.
    pub fn join(mut self) -> Result<()> {
        self.thread.take().unwrap().join().unwrap()
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.connect().request("GET", path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.connect().request("POST", path, Some(body.to_string().as_bytes()))
    }

    pub fn chat(&self, body: &Value) -> Reply {
        self.post("/v1/chat/completions", body)
    }

    pub fn completion(&self, body: &Value) -> Reply {
        self.post("/v1/completions", body)
    }

    /// Waits until something holds.
    #[track_caller]
    pub fn wait_until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < PATIENCE, "never: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until nothing runs or waits and all pages are free.
    #[track_caller]
    pub fn wait_until_free(&self, pages: u64) {
        self.wait_until("everything is free", |server| {
            let load = server.engine.load();
            load.running == 0 && load.waiting == 0 && load.free_pages == pages
        });
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
