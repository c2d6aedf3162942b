//! What an operator decides about the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tandem_hal::{Device, LedgerLine, Place};

use super::api_keys::ApiKeys;
use super::tls::Tls;
use crate::vision::DecodeLimits;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The name that clients call the model by.
    pub served_model_name: String,
    /// Who may ask.
    pub api_keys: ApiKeys,
    /// What encrypts connections; `None` for plain ones.
    pub tls: Option<Arc<Tls>>,
    /// Names what decides the bits of answers; shown among the metrics.
    pub numerics: String,
    /// What devices hold, and hold until the end; shown among the metrics.
    pub memory: Vec<MemoryUse>,
    /// What runs the model's operators; shown among the metrics.
    pub kernels: Vec<KernelUse>,
    /// Requests that may wait besides those that run; more are answered 429.
    pub max_queued_requests: u32,
    /// Tokens that the prompts of requests may have in all until their prefill begins; more are answered 429. A longer
    /// prompt waits alone.
    pub max_queued_tokens: u32,
    /// How patient the server is with connections.
    pub connections: ConnectionLimits,
    /// Bounds of a request's body.
    pub body: BodyLimits,
    /// Bodies of more bytes are parsed and their prompts tokenised one at a time: that takes
    /// fifty to seventy times their memory.
    pub large_body_bytes: usize,
    /// Bounds of its pictures.
    pub pictures: PictureBounds,
    /// How long running requests may go on after a signal to stop.
    pub drain_timeout: Duration,
    /// How often a silent stream says that it is alive.
    pub ping_interval: Duration,
}

/// A row that some launches of an operator take.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KernelUse {
    /// The operator.
    pub op: &'static str,
    /// The row.
    pub row: &'static str,
    /// On which rank.
    pub rank: usize,
}

/// Memory that is held for one purpose.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemoryUse {
    /// Whose ledger it is in.
    pub device: String,
    /// Where it lies: `device`, `group`, `pinned` or `mapped`.
    pub place: &'static str,
    /// What it is for.
    pub purpose: String,
    /// Its bytes.
    pub bytes: u64,
}

impl MemoryUse {
    /// All that a device holds. Layers are one purpose together: `layers.2.attn` counts as `layers.attn`.
    pub fn of(device: &dyn Device) -> Vec<Self> {
        let mut sums = BTreeMap::<(String, &str), u64>::new();
        for LedgerLine { purpose, place, bytes } in device.ledger() {
            let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
            let words: Vec<_> = purpose.split('.').filter(|word| !is_number(word)).collect();
            let place = match place {
                Place::Device => "device",
                Place::Group => "group",
                Place::Pinned => "pinned",
                Place::Mapped => "mapped",
            };
            *sums.entry((words.join("."), place)).or_default() += bytes;
        }
        let name = &device.info().name;
        let line = |((purpose, place), bytes)| Self { device: name.clone(), place, purpose, bytes };
        sums.into_iter().map(line).collect()
    }
}

/// How patient the server is with connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Longest time for the head of the first or next request to arrive.
    pub head_timeout: Duration,
    /// Longest time that what is sent waits for the client to take any of it, behind what the system
    /// buffers.
    pub stall_timeout: Duration,
}

/// Bounds of a request's body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Most bytes.
    pub bytes: usize,
    /// Longest time to arrive.
    pub timeout: Duration,
    /// Bytes that the bodies of all requests may have from when they arrive until their prompts
    /// are tokenised; more are answered 429. Half of it is for the first MiB of each body, so that
    /// small ones find room however many large ones are slow. One of the most bytes always fits.
    pub held_bytes: usize,
}

/// Bounds of pictures.
#[derive(Clone, Copy, Debug)]
pub struct PictureBounds {
    /// Most pictures of a request.
    pub per_request: usize,
    /// Of one file, before it is decoded.
    pub decoding: DecodeLimits,
    /// Bytes that the prepared pictures of all requests may take on the host. The largest picture
    /// of the release takes 11 million.
    pub waiting_bytes: u64,
}

impl Default for PictureBounds {
    /// 64 pictures of up to 8192 pixels a side, 4 GiB in all.
    fn default() -> Self {
        Self { per_request: 64, decoding: DecodeLimits::default(), waiting_bytes: 4 << 30 }
    }
}

impl ServerOptions {
    /// The defaults under a name: no keys, no TLS, 256 waiting requests and 8 Mi tokens of prompts, a minute for
    /// a head and for a client that takes nothing, bodies of 32 MiB within 30 s and 512 MiB in all, large ones from 64 KiB on,
    /// 30 s to drain, a ping every 15 s, and [`PictureBounds::default`].
    pub fn new(served_model_name: impl Into<String>) -> Self {
        Self {
            served_model_name: served_model_name.into(),
            api_keys: ApiKeys::default(),
            tls: None,
            numerics: String::new(),
            memory: Vec::new(),
            kernels: Vec::new(),
            max_queued_requests: 256,
            max_queued_tokens: 8 << 20,
            connections: ConnectionLimits {
                head_timeout: Duration::from_secs(60),
                stall_timeout: Duration::from_secs(60),
            },
            body: BodyLimits {
                bytes: 32 << 20,
                timeout: Duration::from_secs(30),
                held_bytes: 512 << 20,
            },
            large_body_bytes: 64 << 10,
            pictures: PictureBounds::default(),
            drain_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(15),
        }
    }
}
