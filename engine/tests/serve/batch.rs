//! Files of requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tandem_engine::serve::{
    BatchRequest, EngineHandle, Local, ServedModel, ServerOptions, answer_batch,
};
use tandem_engine::{Error, Result};

use crate::scripted::{Script, Scripted, Then};
use crate::support::{chat, completion, ids, tokenizer};

fn local(scripted: Scripted, change: impl FnOnce(&mut ServerOptions)) -> Local {
    let engine = EngineHandle::spawn(scripted).unwrap();
    let model = ServedModel { tokenizer: tokenizer().clone(), pictures: None };
    let mut options = ServerOptions::new("demo");
    change(&mut options);
    Local::new(engine, model, options).unwrap()
}

fn request(id: &str, url: &str, body: &Value) -> BatchRequest {
    let line = json!({ "custom_id": id, "method": "POST", "url": url, "body": body });
    BatchRequest::parse(&line.to_string()).unwrap()
}

/// Status and body of every answer, by the ids of their requests.
fn answers(local: &Local, requests: Vec<BatchRequest>) -> Result<BTreeMap<String, (u64, Value)>> {
    let mut answers = BTreeMap::new();
    answer_batch(local, requests, |line| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["error"].is_null());
        let response = &line["response"];
        let answer = (response["status_code"].as_u64().unwrap(), response["body"].clone());
        let id = line["custom_id"].as_str().unwrap().to_owned();
        assert!(answers.insert(id, answer).is_none());
        Ok(())
    })?;
    Ok(answers)
}

#[test]
fn every_request_has_an_answer_as_from_the_server() {
    let local = local(Scripted::saying(ids("Call me Ishmael.")), |_| {});
    let mut requests = vec![
        request("bad", "/v1/chat/completions", &chat(json!({ "colour": 1 }))),
        request("text", "/v1/completions", &completion(json!({}))),
        request(
            "item",
            "/v1/responses",
            &json!({ "input": "Hi", "reasoning": { "effort": "none" } }),
        ),
    ];
    requests
        .extend((0..40).map(|i| request(&i.to_string(), "/v1/chat/completions", &chat(json!({})))));
    let answers = answers(&local, requests).unwrap();
    assert_eq!(answers.len(), 43);
    assert_eq!(answers["bad"].0, 400);
    assert_eq!(answers["bad"].1["error"]["param"], "colour");
    assert_eq!(answers["text"].1["choices"][0]["text"], "Call me Ishmael.");
    assert_eq!(answers["item"].1["output"][0]["content"][0]["text"], "Call me Ishmael.");
    for i in 0..40 {
        let (status, body) = &answers[&i.to_string()];
        assert_eq!(*status, 200);
        assert_eq!(body["choices"][0]["message"]["content"], "Call me Ishmael.");
    }
}

#[test]
fn a_request_that_finds_no_room_waits() {
    let local = local(Scripted::saying(ids("Call me")), |options| options.max_queued_requests = 0);
    let two = completion(json!({ "n": 2 }));
    let requests = (0..30).map(|i| request(&i.to_string(), "/v1/completions", &two)).collect();
    assert!(answers(&local, requests).unwrap().values().all(|(status, _)| *status == 200));
}

#[test]
fn an_engine_that_fails_and_a_full_disk_end_the_batch() {
    let one = || vec![request("a", "/v1/completions", &completion(json!({})))];
    let failing = local(Scripted::new(|_| Script::new(ids("Call"), Then::Panic)), |_| {});
    assert!(matches!(answers(&failing, one()).unwrap_err(), Error::Internal { .. }));
    let full = local(Scripted::saying(ids("Call me")), |_| {});
    let refuse = |_: &str| Err(Error::Argument { argument: "a".into(), problem: "b".into() });
    assert!(matches!(answer_batch(&full, one(), refuse).unwrap_err(), Error::Argument { .. }));
}
