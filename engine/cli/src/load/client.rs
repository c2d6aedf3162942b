//! A client that streams, and how many of them go about a run.

use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::arrivals::Arrivals;
use super::timeline::Timeline;
use super::workload::Session;

/// Longest silence before a request counts as lost.
const PATIENCE: Duration = Duration::from_secs(600);
/// A client's thread does little.
const STACK_BYTES: usize = 256 << 10;

/// The server under load.
pub(super) struct Server {
    agent: Agent,
    url: String,
    key: Option<String>,
    model: Option<String>,
}

impl Server {
    /// By the beginning of its addresses, such as `http://127.0.0.1:8000`. Of `https` ones the certificate has to be of an
    /// authority of `roots`, or of those that browsers know.
    pub(super) fn new(
        url: &str,
        key: Option<String>,
        model: Option<String>,
        roots: Option<Vec<Certificate<'static>>>,
    ) -> Self {
        let roots = roots.map_or(RootCerts::WebPki, RootCerts::from);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_recv_response(Some(PATIENCE))
            .max_idle_connections_per_host(4096)
            .build();
        Self { agent: config.into(), url: url.trim_end_matches('/').to_owned(), key, model }
    }

    /// Sends a body; what the client saw and the text of the answer.
    pub(super) fn ask(&self, body: &Value, clock: Instant) -> (Timeline, String) {
        let now = || clock.elapsed().as_secs_f64();
        let mut timeline = Timeline { sent: now(), ..Timeline::default() };
        let mut text = String::new();
        if let Err(failure) = self.stream(body, &mut timeline, &mut text, &now) {
            timeline.failure = Some(failure);
        }
        timeline.end = now();
        (timeline, text)
    }

    fn stream(
        &self,
        body: &Value,
        timeline: &mut Timeline,
        text: &mut String,
        now: &dyn Fn() -> f64,
    ) -> Result<(), String> {
        let url = format!("{}/v1/chat/completions", self.url);
        let mut request = self.agent.post(url).content_type("application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let response = request.send(body.to_string()).map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let lines = BufReader::new(response.into_body().into_reader()).lines();
        if status != 200 {
            return Err(format!("status {status}"));
        }
        for line in lines {
            let line = line.map_err(|error| error.to_string())?;
            let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
            if data == "[DONE]" {
                return Ok(());
            }
            let event: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
            read_event(&event, timeline, text, now())?;
        }
        Err("the stream broke off".to_owned())
    }

    /// The first model that the server names.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn find_model(&mut self) -> Result<(), String> {
        if self.model.is_some() {
            return Ok(());
        }
        let mut request = self.agent.get(format!("{}/v1/models", self.url));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let response = request.call().map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().read_to_string().map_err(|error| error.to_string())?;
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        match body["data"][0]["id"].as_str() {
            Some(name) if status == 200 => self.model = Some(name.to_owned()),
            _ => return Err(format!("GET /v1/models has status {status} and names no model")),
        }
        Ok(())
    }

    /// All turns of a session, the pause before each but the first.
    fn play(&self, mut session: Session, pause: Duration, clock: Instant) -> Vec<Timeline> {
        let mut timelines = vec![];
        while let Some(body) = session.next(self.model.as_deref()) {
            if !timelines.is_empty() {
                thread::sleep(pause);
            }
            let (timeline, text) = self.ask(&body, clock);
            let failed = timeline.failure.is_some();
            timelines.push(timeline);
            if failed {
                break;
            }
            session.answered(&text);
        }
        timelines
    }

    /// Runs sessions as they arrive; what every request saw.
    pub(super) fn run(
        &self,
        sessions: &[Session],
        arrivals: Arrivals,
        pause: Duration,
        seed: u64,
    ) -> Vec<Timeline> {
        let gaps = arrivals.gaps(sessions.len(), seed);
        let (clock, all) = (Instant::now(), Mutex::new(vec![]));
        let keep = |timelines| all.lock().expect("no client panics").extend::<Vec<_>>(timelines);
        thread::scope(|scope| match arrivals {
            Arrivals::Closed(at_once) => {
                let next = AtomicUsize::new(0);
                let client = move |next: &AtomicUsize| {
                    while let Some(session) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                        keep(self.play(session.clone(), pause, clock));
                    }
                };
                let (next, client) = (&next, &client);
                thread::scope(|inner| {
                    for _ in 0..at_once.min(sessions.len()) {
                        let client = move || client(next);
                        let builder = thread::Builder::new().stack_size(STACK_BYTES);
                        builder.spawn_scoped(inner, client).expect("the system has threads");
                    }
                });
            }
            Arrivals::Open { .. } => {
                let (mut due, keep) = (0.0, &keep);
                for (session, gap) in sessions.iter().zip(gaps) {
                    due += gap;
                    let wait = due - clock.elapsed().as_secs_f64();
                    thread::sleep(Duration::from_secs_f64(wait.max(0.0)));
                    let client = move || keep(self.play(session.clone(), pause, clock));
                    let builder = thread::Builder::new().stack_size(STACK_BYTES);
                    builder.spawn_scoped(scope, client).expect("the system has threads");
                }
            }
        });
        all.into_inner().expect("no client panics")
    }
}

/// Takes in one event of a stream that came now.
fn read_event(
    event: &Value,
    timeline: &mut Timeline,
    text: &mut String,
    now: f64,
) -> Result<(), String> {
    if let Some(message) = event["error"]["message"].as_str() {
        return Err(message.to_owned());
    }
    let delta = &event["choices"][0]["delta"];
    let said = ["content", "reasoning_content", "reasoning"].map(|name| delta[name].as_str());
    if said.iter().flatten().any(|piece| !piece.is_empty()) {
        timeline.pieces.push(now);
    }
    text.push_str(said[0].unwrap_or_default());
    if let Some(usage) = event["usage"].as_object() {
        let count = |value: &Value| value.as_u64().unwrap_or_default();
        timeline.prompt_tokens = count(&usage["prompt_tokens"]);
        timeline.output_tokens = count(&usage["completion_tokens"]);
        timeline.cached_tokens = count(&event["usage"]["prompt_tokens_details"]["cached_tokens"]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_pieces_usage_or_errors() {
        let (mut timeline, mut text) = (Timeline::default(), String::new());
        let mut read = |event: Value, now| read_event(&event, &mut timeline, &mut text, now);
        let delta = |delta: Value| json!({ "choices": [{ "delta": delta }] });
        read(delta(json!({ "role": "assistant", "content": "" })), 1.0).unwrap();
        read(delta(json!({ "reasoning_content": "hm" })), 2.0).unwrap();
        read(delta(json!({ "content": "yes" })), 3.0).unwrap();
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 2 });
        read(json!({ "choices": [], "usage": usage }), 4.0).unwrap();
        let refused = read(json!({ "error": { "message": "no room" } }), 5.0);
        assert_eq!(refused, Err("no room".to_owned()));
        assert_eq!((timeline.pieces, text.as_str()), (vec![2.0, 3.0], "yes"));
        assert_eq!((timeline.prompt_tokens, timeline.output_tokens), (7, 2));
    }
}
