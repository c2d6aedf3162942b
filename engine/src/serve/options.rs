//! What an operator decides about the server.

use std::time::Duration;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The name that clients call the model by.
    pub served_model_name: String,
    /// Requests that may wait besides those that run; more are answered 429.
    pub max_queued_requests: u32,
    /// Bounds of a request's body.
    pub body: BodyLimits,
    /// How long running requests may go on after a signal to stop.
    pub drain_timeout: Duration,
    /// How often a silent stream says that it is alive.
    pub ping_interval: Duration,
}

/// Bounds of a request's body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Most bytes.
    pub bytes: usize,
    /// Longest time to arrive.
    pub timeout: Duration,
}

impl ServerOptions {
    /// The defaults under a name: 256 waiting requests, bodies of 32 MiB within 30 s, 30 s to
    /// drain, a ping every 15 s.
    pub fn new(served_model_name: impl Into<String>) -> Self {
        Self {
            served_model_name: served_model_name.into(),
            max_queued_requests: 256,
            body: BodyLimits { bytes: 32 << 20, timeout: Duration::from_secs(30) },
            drain_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(15),
        }
    }
}
