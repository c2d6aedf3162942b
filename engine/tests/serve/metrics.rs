//! `/metrics` against what clients saw.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tandem_engine::exec::{Engine, EngineOptions};
use tandem_engine::serve::{EngineHandle, KernelUse, MemoryUse, Sequences, ServerOptions};
use tandem_hal::{Device, Place};
use tandem_reference::RefDevice;

use crate::engine_support::{Drafts, FakeModel, options};
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, ids, merge};

/// Samples by name and labels, as a scraper reads them.
struct Page(BTreeMap<String, f64>);

impl Page {
    #[track_caller]
    fn of(server: &TestServer) -> Self {
        let reply = server.get("/metrics");
        assert_eq!(reply.status, 200);
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
        let text = String::from_utf8(reply.body).unwrap();
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        });
        let samples: BTreeMap<_, _> = samples.collect();
        let told = |name: &String| {
            let name = name.split('{').next().unwrap();
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            [Some(name), base].into_iter().flatten().any(|name| {
                ["HELP", "TYPE"].iter().all(|kind| text.contains(&format!("# {kind} {name} ")))
            })
        };
        assert!(samples.keys().all(|name| name.starts_with("v41_") && told(name)), "{text}");
        Self(samples)
    }

    /// A sample; 0 when there is none yet.
    fn value(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// The sum of all samples of a metric.
    fn sum(&self, name: &str) -> f64 {
        let of = |key: &&String| key.split('{').next() == Some(name);
        self.0.keys().filter(of).map(|key| self.0[key]).sum()
    }

    #[track_caller]
    fn assert_is(&self, name: &str, value: u64) {
        assert_eq!(self.value(name), value as f64, "{name}: {:#?}", self.0);
    }
}

const PAGES: u64 = 256;

/// Over a model that drafts, with a prefix cache; behind `poison` its logits are no numbers.
fn server(poison: Option<u32>) -> TestServer {
    let mut model = FakeModel::new(Drafts::Mixed);
    (model.geometry.vocab, model.geometry.context_tokens) = (2000, 4096);
    (model.thorough, model.poison) = (false, poison);
    let options =
        EngineOptions { pages: PAGES, resume_points: 16, step_sizes: vec![8], ..options() };
    let sequences = Sequences::new(Engine::new(model, options).unwrap(), vec![]);
    TestServer::around(EngineHandle::spawn(sequences).unwrap(), ServerOptions::new("demo"))
}

#[test]
fn counts_are_what_clients_saw() {
    let server = server(None);
    let (mut prompt, mut cached, mut output) = (0, 0, 0);
    for number in 0..24_u64 {
        let shared: Vec<u64> = (0..150).map(|at| 3 + (number % 3) * 31 + at).collect();
        let ids = [shared, vec![700 + number]].concat();
        let body = completion(json!({ "prompt": ids, "max_tokens": 20 + number % 7 }));
        let usage = server.completion(&body).ok()["usage"].clone();
        prompt += usage["prompt_tokens"].as_u64().unwrap();
        cached += usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        output += usage["completion_tokens"].as_u64().unwrap();
    }
    assert!(cached > 0, "nothing to compare");
    let page = Page::of(&server);
    page.assert_is("v41_prompt_tokens_total{source=\"computed\"}", prompt - cached);
    page.assert_is("v41_prompt_tokens_total{source=\"cached\"}", cached);
    page.assert_is("v41_prompt_tokens_total{source=\"replayed\"}", 0);
    page.assert_is("v41_output_tokens_total{kind=\"content\"}", output);
    page.assert_is("v41_prefix_lookup_tokens_total", prompt);
    page.assert_is("v41_prefix_hit_tokens_total", cached);
    page.assert_is("v41_requests_total{endpoint=\"/v1/completions\",finish=\"length\"}", 24);
    assert_eq!(page.sum("v41_requests_total"), 24.0);
    for name in ["ttft", "e2e", "tpot", "queue", "prefill", "decode"] {
        page.assert_is(&format!("v41_{name}_seconds_count"), 24);
        page.assert_is(&format!("v41_{name}_seconds_bucket{{le=\"+Inf\"}}"), 24);
    }
    // Queue and prefill are parts of the time to the first token.
    let parts = page.value("v41_queue_seconds_sum") + page.value("v41_prefill_seconds_sum");
    assert!(parts <= page.value("v41_ttft_seconds_sum"), "{parts} s");
    // A step gives a request its drafts that stood and one token more, but for the last step, which
    // the limit may cut.
    let steps = page.value("v41_ttft_seconds_count") + page.value("v41_itl_seconds_count");
    let accepted = page.sum("v41_spec_accepted_total");
    assert!(accepted > 0.0 && accepted <= page.value("v41_spec_drafted_total"));
    let most = accepted + steps;
    assert!((most - 24.0..=most).contains(&(output as f64)), "{output} of {accepted} and {steps}");
    let places = (1..=5).map(|place| format!("v41_spec_accepted_total{{position=\"{place}\"}}"));
    let places: Vec<_> = places.map(|place| page.value(&place)).collect();
    assert!(places.is_sorted_by(|first, second| first >= second), "{places:?}");
    // Every row is a prompt's, a token's or a draft's; none is missing among the steps.
    let rows = page.value("v41_step_tokens_sum");
    assert_eq!(page.sum("v41_step_seconds_count"), page.value("v41_step_tokens_count"));
    assert!(rows >= (prompt - cached + output) as f64, "{rows} rows");
}

#[test]
fn pages_and_failures_are_told() {
    let server = server(Some(1999));
    let bad = completion(json!({ "prompt": [5, 6, 1999] }));
    server.completion(&bad).refusal(500);
    let ids: Vec<u64> = (0..200).map(|at| 3 + at).collect();
    server.completion(&completion(json!({ "prompt": ids, "max_tokens": 4 }))).ok();
    server.wait_until_free(PAGES);
    let page = Page::of(&server);
    page.assert_is("v41_nan_rows_total", 1);
    page.assert_is("v41_requests_total{endpoint=\"/v1/completions\",finish=\"error\"}", 1);
    page.assert_is("v41_requests_total{endpoint=\"/v1/completions\",finish=\"length\"}", 1);
    assert_eq!(page.sum("v41_requests_rejected_total"), 0.0);
    let of = |state: &str| {
        page.value(&format!("v41_cache_pages{{kind=\"compressed\",state=\"{state}\"}}"))
    };
    assert_eq!((of("used"), of("cached") + of("free")), (0.0, PAGES as f64));
    assert_eq!(of("cached"), 3.0, "three whole pages of the prompt stay for others");
    page.assert_is("v41_cache_usage_ratio{kind=\"compressed\"}", 0);
    let windows =
        |state| page.value(&format!("v41_cache_pages{{kind=\"window\",state=\"{state}\"}}"));
    assert!(windows("cached") > 0.0, "resume points hold some");
    assert_eq!(windows("used"), 0.0);
    page.assert_is("v41_cache_usage_ratio{kind=\"window\"}", 0);
    let build = "v41_build_info{version=\"0.1.0\",checkpoint=\"demo\",numerics=\"\"}";
    page.assert_is(build, 1);
    server.wait_until("it was looked at at rest", |server| {
        Page::of(server).value("v41_rest_checks_total") == 1.0
    });
}

#[test]
fn memory_is_told_by_purpose_and_kernels_by_row() {
    let device = RefDevice::new();
    let take = |bytes, place, purpose| device.allocate(bytes, place, purpose).unwrap();
    let _held = [
        take(300, Place::Device, "layers.0.attn"),
        take(400, Place::Device, "layers.11.attn"),
        take(50, Place::Pinned, "layers.2.engram.table"),
    ];
    let name = device.info().name.clone();
    let told = MemoryUse::of(&device);
    let of = |place, purpose: &str, bytes| MemoryUse {
        device: name.clone(),
        place,
        purpose: purpose.to_owned(),
        bytes,
    };
    let expected = [of("device", "layers.attn", 700), of("pinned", "layers.engram.table", 50)];
    assert_eq!(told, expected);
    let kernels = vec![KernelUse { op: "gemm.f32", row: "portable", rank: 1 }];
    let server = TestServer::with(Scripted::saying(vec![5]), |options| {
        (options.memory, options.kernels) = (told, kernels);
    });
    let page = Page::of(&server);
    for (place, purpose, bytes) in
        [("device", "layers.attn", 700), ("pinned", "layers.engram.table", 50)]
    {
        let labels = format!("device=\"{name}\",place=\"{place}\",purpose=\"{purpose}\"");
        page.assert_is(&format!("v41_memory_bytes{{{labels}}}"), bytes);
    }
    page.assert_is("v41_kernel_info{op=\"gemm.f32\",row=\"portable\",rank=\"1\"}", 1);
}

#[test]
fn running_waiting_refused_and_cancelled() {
    let mut scripted = Scripted::new(|_| Script::new(ids("Call me"), Then::Again));
    scripted.step_time = Duration::from_millis(2);
    scripted.limits.max_sequences = 2;
    let server = TestServer::with(scripted, |options| options.max_queued_requests = 1);
    let body = chat(json!({ "max_tokens": 4000, "stream": true })).to_string();
    let open: Vec<_> = (0..3)
        .map(|_| {
            let mut connection = server.connect();
            connection.send_request("POST", "/v1/chat/completions", Some(body.as_bytes()));
            assert_eq!(connection.head().0, 200);
            connection
        })
        .collect();
    // What the engine is busy with is told after its step, the acceptance of a request before.
    server.wait_until("two run and one waits", |server| {
        let page = Page::of(server);
        page.value("v41_requests_running") == 2.0 && page.value("v41_requests_waiting") == 1.0
    });
    server.chat(&chat(json!({}))).refusal(429);
    server.chat(&chat(json!({ "strange": 1 }))).refusal(400);
    server.get("/v1/nothing").refusal(404);
    let page = Page::of(&server);
    page.assert_is("v41_requests_running", 2);
    page.assert_is("v41_requests_waiting", 1);
    for reason in ["overloaded", "unknown_parameter", "not_found"] {
        page.assert_is(&format!("v41_requests_rejected_total{{reason=\"{reason}\"}}"), 1);
    }
    page.assert_is("v41_requests_cancelled_total", 0);
    drop(open);
    server.wait_until_free(1024);
    server.wait_until("all are counted", |server| {
        Page::of(server).value("v41_requests_cancelled_total") == 3.0
    });
    let page = Page::of(&server);
    page.assert_is("v41_requests_running", 0);
    assert_eq!(page.sum("v41_requests_total"), 0.0);
}

#[test]
fn tokens_are_counted_by_what_they_are() {
    let call = "<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n";
    let said =
        ids(&format!("Hmm.</think>Let me see.\n\n<｜DSML｜ calls>\n{call}</｜DSML｜ calls>"));
    let server = TestServer::of(Scripted::saying(said));
    let mut body = chat(json!({ "tools": [{ "function": { "name": "f", "parameters": {} } }] }));
    merge(&mut body, json!({ "thinking": { "type": "enabled" } }));
    let reply: Value = server.chat(&body).ok();
    let page = Page::of(&server);
    let kinds = ["reasoning", "content", "tool"]
        .map(|kind| page.value(&format!("v41_output_tokens_total{{kind=\"{kind}\"}}")));
    assert!(kinds.iter().all(|count| *count > 0.0), "{kinds:?}");
    assert_eq!(json!(kinds.iter().sum::<f64>() as u64), reply["usage"]["completion_tokens"]);
    page.assert_is(
        "v41_requests_total{endpoint=\"/v1/chat/completions\",finish=\"tool_calls\"}",
        1,
    );
}
