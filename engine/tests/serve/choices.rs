//! Several replies to a request: of one prompt, and of several.

use serde_json::{Value, json};
use tandem_engine::sample::Draws;
use tandem_engine::serve::Job;

use crate::client::Streamed;
use crate::demo::{PAGES, SERVER};
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::{chat, completion, ids, merge, tokenizer};

/// An engine whose reply depends on seed and prompt.
fn server() -> TestServer {
    TestServer::of(Scripted::new(|job: &Job| {
        let seed = job.sampling.seed.unwrap_or(0) % 1000;
        Script::new(ids(&format!("{seed} to {}", job.prompt.len())), Then::Stop)
    }))
}

fn jobs(server: &TestServer) -> Vec<Job> {
    std::mem::take(&mut server.seen.lock().unwrap().jobs)
}

fn text(choice: &Value) -> String {
    let text = choice.get("text").unwrap_or_else(|| &choice["message"]["content"]);
    text.as_str().expect("choices have a text").to_owned()
}

/// The texts of a whole reply, whose choices are in order.
#[track_caller]
fn texts(body: &Value) -> Vec<String> {
    let choices = body["choices"].as_array().unwrap();
    for (place, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], place);
        assert!(choice["finish_reason"].is_string());
    }
    choices.iter().map(text).collect()
}

/// The texts of a stream, joined by index, and its usage.
#[track_caller]
fn joined(streamed: &Streamed, count: usize) -> (Vec<String>, Value) {
    let (mut texts, mut finished) = (vec![String::new(); count], vec![false; count]);
    let mut usage = Value::Null;
    for chunk in &streamed.chunks {
        assert!(usage.is_null(), "something behind the usage");
        usage = chunk["usage"].clone();
        let Some(choice) = chunk["choices"].get(0) else { continue };
        let place = usize::try_from(choice["index"].as_u64().unwrap()).unwrap();
        assert!(!finished[place], "a chunk behind the end of choice {place}");
        finished[place] = !choice["finish_reason"].is_null();
        let piece = choice["text"].as_str().or(choice["delta"]["content"].as_str());
        texts[place] += piece.unwrap_or_default();
    }
    assert!(finished.iter().all(|finished| *finished) && streamed.done);
    (texts, usage)
}

#[test]
fn every_reply_has_a_seed_of_its_own_and_the_first_the_request_s() {
    let server = server();
    let body = server.chat(&chat(json!({ "n": 3, "seed": 7 }))).ok();
    let jobs = jobs(&server);
    let seeds: Vec<_> = jobs.iter().map(|job| job.sampling.seed.unwrap()).collect();
    assert_eq!(seeds, [7, Draws::reply_seed(7, 1), Draws::reply_seed(7, 2)]);
    assert!(seeds[1] != 7 && seeds[2] != seeds[1] && seeds[2] != 7);
    let said = texts(&body);
    assert_eq!(said[0], format!("7 to {}", jobs[0].prompt.len()));
    assert!(said[1] != said[0] && said[2] != said[1]);
    let usage = &body["usage"];
    assert_eq!(usage["prompt_tokens"], jobs[0].prompt.len(), "one prompt, counted once");
    let tokens: usize = said.iter().map(|text| ids(text).len()).sum();
    assert_eq!(usage["completion_tokens"], tokens);
    // Without a seed every reply gets a fresh one from the engine.
    server.chat(&chat(json!({ "n": 2 }))).ok();
    assert!(self::jobs(&server).iter().all(|job| job.sampling.seed.is_none()));
}

#[test]
fn replies_streamed_by_index_are_the_whole_ones() {
    let server = server();
    let options = json!({ "include_usage": true });
    let stream = json!({ "stream": true, "stream_options": options });
    for seed in 0..4 {
        let mut body = chat(json!({ "n": 5, "seed": seed }));
        let whole = server.chat(&body).ok();
        merge(&mut body, stream.clone());
        let (said, usage) = joined(&server.chat(&body).events(), 5);
        assert_eq!((said, &usage), (texts(&whole), &whole["usage"]));
        let mut body = completion(json!({ "prompt": ["a", "bcd efg"], "n": 3, "seed": seed }));
        let whole = server.completion(&body).ok();
        merge(&mut body, stream.clone());
        let (said, usage) = joined(&server.completion(&body).events(), 6);
        assert_eq!((said, &usage), (texts(&whole), &whole["usage"]));
    }
}

#[test]
fn several_prompts_are_answered_in_their_order() {
    let server = server();
    for prompts in [json!(["Call me", "It was the best of times"]), json!([[5, 6], [5, 6, 7, 8]])] {
        let body = completion(json!({ "prompt": prompts, "n": 2, "seed": 3, "best_of": 2 }));
        let body = server.completion(&body).ok();
        let jobs = jobs(&server);
        let lengths: Vec<_> = jobs.iter().map(|job| job.prompt.len()).collect();
        assert_eq!((lengths[0], lengths[2]), (lengths[1], lengths[3]));
        assert!(lengths[0] < lengths[2]);
        // Each prompt gets what a request of its own would get.
        assert_eq!(jobs[0].sampling.seed, jobs[2].sampling.seed);
        let expected: Vec<_> = jobs
            .iter()
            .map(|job| format!("{} to {}", job.sampling.seed.unwrap() % 1000, job.prompt.len()))
            .collect();
        assert_eq!(texts(&body), expected);
        assert_eq!(body["usage"]["prompt_tokens"], lengths[0] + lengths[2]);
    }
}

#[test]
fn an_echo_begins_every_text_with_its_prompt() {
    let server = server();
    let more = json!({ "prompt": ["Call me", "x"], "n": 2, "echo": true, "seed": 3 });
    let (mut body, mut bare) = (completion(more.clone()), completion(more));
    merge(&mut bare, json!({ "echo": false }));
    let (whole, bare) = (server.completion(&body).ok(), texts(&server.completion(&bare).ok()));
    let starts = ["Call me", "Call me", "x", "x"];
    let expected: Vec<_> = starts.iter().zip(&bare).map(|(a, b)| format!("{a}{b}")).collect();
    assert_eq!(texts(&whole), expected);
    merge(&mut body, json!({ "stream": true }));
    assert_eq!(joined(&server.completion(&body).events(), 4).0, expected);
    // Of ids the text that the same ids have in a reply.
    let prompt = [vec![0], ids("Moby Dick")].concat();
    let echo = completion(json!({ "prompt": prompt, "echo": true, "seed": 3 }));
    let said = texts(&server.completion(&echo).ok()).remove(0);
    let spelled = String::from_utf8(tokenizer().decode(&prompt).unwrap()).unwrap();
    assert!(said.starts_with(&spelled) && spelled.ends_with("Moby Dick"), "{said}");
}

#[test]
fn a_reply_that_fails_ends_them_all() {
    let scripted = Scripted::new(|job: &Job| {
        let first = job.sampling.seed == Some(5);
        if first {
            Script::new(ids("Call me"), Then::Fail("no numbers"))
        } else {
            Script::new(ids("and on "), Then::Again)
        }
    });
    let pages = scripted.pages;
    let server = TestServer::of(scripted);
    let mut body = chat(json!({ "n": 3, "seed": 5, "max_tokens": 4000 }));
    let (_, message) = server.chat(&body).refusal(500);
    assert!(message.contains("no numbers"), "{message}");
    server.wait_until_free(pages);
    merge(&mut body, json!({ "stream": true }));
    let streamed = server.chat(&body).events();
    assert!(!streamed.done && streamed.error.is_some());
    server.wait_until_free(pages);
    // A prompt that the engine refuses takes the others with it.
    let body = completion(json!({ "prompt": [[5], [7, 8]], "max_tokens": 4000 }));
    server.completion(&body).refusal(400);
    server.wait_until_free(pages);
}

#[test]
fn replies_take_places() {
    let mut scripted = Scripted::new(|_: &Job| Script::new(ids("and on "), Then::Again));
    scripted.limits.max_sequences = 2;
    scripted.step_time = std::time::Duration::from_millis(2);
    let server = TestServer::with(scripted, |options| options.max_queued_requests = 2);
    let many = json!({ "n": 5, "max_tokens": 3 });
    let (param, message) = server.chat(&chat(many)).refusal(400);
    assert_eq!(param.as_deref(), Some("n"));
    assert!(message.contains("room for 4"), "{message}");
    let four = json!({ "n": 4, "max_tokens": 3 });
    assert_eq!(texts(&server.chat(&chat(four.clone())).ok()).len(), 4);
    let mut open = server.connect();
    let long = chat(json!({ "n": 3, "stream": true, "max_tokens": 4000 })).to_string();
    open.send_request("POST", "/v1/chat/completions", Some(long.as_bytes()));
    assert_eq!(open.head().0, 200);
    assert_eq!(server.get("/health").ok()["requests_under_way"], 3);
    server.chat(&chat(json!({ "n": 2 }))).refusal(429);
    server.chat(&chat(json!({ "max_tokens": 1 }))).ok();
    drop(open);
    server
        .wait_until("the places are free", |server| server.chat(&chat(four.clone())).status == 200);
}

fn sampled(more: Value) -> Value {
    let mut body = completion(json!({ "prompt": "The white whale", "max_tokens": 12, "seed": 42 }));
    merge(&mut body, json!({ "temperature": 0.9 }));
    merge(&mut body, more);
    body
}

#[test]
fn replies_of_the_demo_are_those_of_requests_with_their_seeds() {
    let together = texts(&SERVER.completion(&sampled(json!({ "n": 3 }))).ok());
    let alone = |seed: u64| texts(&SERVER.completion(&sampled(json!({ "seed": seed }))).ok());
    for (reply, text) in together.iter().enumerate() {
        assert_eq!(*text, alone(Draws::reply_seed(42, reply as u64))[0]);
    }
    assert!(together[0] != together[1] && together[1] != together[2]);
    let prompts = json!({ "prompt": ["The white whale", "Congress"] });
    let both = texts(&SERVER.completion(&sampled(prompts)).ok());
    let second = texts(&SERVER.completion(&sampled(json!({ "prompt": "Congress" }))).ok());
    assert_eq!(both, [together[0].clone(), second[0].clone()]);
    SERVER.wait_until_free(PAGES);
}

#[test]
fn stop_token_ids_end_a_reply_and_are_not_shown() {
    let server = server();
    server.chat(&chat(json!({ "stop_token_ids": [5, 2047] }))).ok();
    assert_eq!(jobs(&server)[0].stop_ids, [5, 2047]);
    let greedy = |more: Value| {
        let mut body = sampled(json!({ "temperature": 0, "logprobs": 0 }));
        merge(&mut body, more);
        SERVER.completion(&body).ok()
    };
    let open = greedy(json!({}));
    let tokens = open["choices"][0]["logprobs"]["tokens"].as_array().unwrap().clone();
    let stop = ids(tokens[3].as_str().unwrap());
    assert_eq!(stop.len(), 1, "{tokens:?}");
    let first = tokens.iter().position(|token| *token == tokens[3]).unwrap();
    let body = greedy(json!({ "stop_token_ids": stop }));
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["choices"][0]["logprobs"]["tokens"], json!(tokens[..first]));
    assert_eq!(body["usage"]["completion_tokens"], first);
}
