//! Answers held to a form, through drafts and sampling on the reference device.

mod engine_support;

use engine_support::table::{Law, engine};
use engine_support::{Answer, answers, options};
use std::collections::HashMap;
use std::sync::LazyLock;
use tandem_engine::exec::{EngineOptions, FinishReason, Request};
use tandem_engine::grammar::{Form, Grammar, Grammars, ReplyForm};
use tandem_engine::sample::SamplingParameters;
use tandem_engine::text::{ControlToken, Tokenizer};
use tandem_hal::Rule;

const VOCABULARY: u64 = 2048;

static TOKENIZER: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::from_bytes(include_bytes!("../cli/demo/tokenizer.json")).unwrap());

fn grammar(form: &Form) -> Grammar {
    static GRAMMARS: LazyLock<Grammars> =
        LazyLock::new(|| Grammars::new(&TOKENIZER, VOCABULARY as u32).unwrap());
    GRAMMARS.compile(ReplyForm { answer: Some(form), ..ReplyForm::default() }).unwrap()
}

/// Logits without a pattern.
fn scattered(id: u32, at: u64) -> Vec<f32> {
    let mix = |x: u64| (u64::from(id) * 31 + at * 7 + x * 13).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..VOCABULARY).map(|x| (mix(x) >> 40) as f32 / (1 << 22) as f32).collect()
}

/// Right at some places, elsewhere something that no form allows.
fn scattered_at_times(_: u32, at: u64) -> Vec<f32> {
    scattered(u32::from(!at.is_multiple_of(3)), at)
}

fn run(laws: (Law, Law), rule: Rule, requests: Vec<Request>) -> Vec<Answer> {
    let mut engine = engine((VOCABULARY, rule), laws, EngineOptions { pages: 4096, ..options() });
    answers(&mut engine, requests)
}

fn held(form: &Grammar, sampling: SamplingParameters, drafts: bool) -> Request {
    let stop_ids = vec![TOKENIZER.control_token(ControlToken::Eos).unwrap()];
    let (form, max_tokens) = (Some(form.clone()), Some(400));
    Request {
        prompt: vec![5, 6],
        form,
        sampling,
        stop_ids,
        max_tokens,
        drafts,
        ..Request::default()
    }
}

fn text(answer: &Answer) -> String {
    String::from_utf8(TOKENIZER.decode(&answer.tokens).unwrap()).unwrap()
}

fn schema() -> Form {
    Form::JsonSchema(serde_json::json!({
        "type": "object",
        "properties": {
            "a": { "type": "string", "maxLength": 12 },
            "b": { "type": "array", "items": { "type": "integer", "maximum": 99, "minimum": 0 },
                   "maxItems": 4 },
        },
        "required": ["a", "b"],
        "additionalProperties": false,
    }))
}

/// C054 within a form.
#[test]
fn greedy_answers_in_a_form_do_not_depend_on_drafts() {
    let form = grammar(&schema());
    let greedy = SamplingParameters::default;
    let alone = run((scattered, scattered), Rule::Standard, vec![held(&form, greedy(), false)]);
    let answer = &alone[0];
    assert!(matches!(answer.finish, Some(FinishReason::Stop(_))), "{:?}", answer.finish);
    let value: serde_json::Value = serde_json::from_str(&text(answer)).unwrap();
    assert!(value["a"].is_string() && value["b"].is_array(), "{value}");
    for rule in [Rule::Standard, Rule::Block, Rule::Greedy] {
        for draft in [scattered as Law, scattered_at_times] {
            // Beside one without a form, and one held to the same.
            let free = Request { form: None, max_tokens: Some(30), ..held(&form, greedy(), true) };
            let requests = vec![held(&form, greedy(), true), free, held(&form, greedy(), true)];
            let all = run((scattered, draft), rule, requests);
            for answer in [&all[0], &all[2]] {
                assert_eq!((&answer.tokens, answer.finish), (&alone[0].tokens, alone[0].finish));
                assert!(answer.usage.drafted_tokens > 0);
            }
            assert_eq!(all[1].tokens.len(), 30);
        }
    }
}

/// Drafts change the law of an answer in a form as little as that of any other.
#[test]
fn sampled_answers_in_a_form_have_one_law() {
    let form = grammar(&Form::Regex("[ab]{4}".into()));
    let count = 500;
    let of = |drafts: bool, rule| {
        let requests = (0..count).map(|seed| {
            let sampling = SamplingParameters {
                temperature: 1.0,
                seed: Some(seed + u64::from(drafts) * count),
                ..SamplingParameters::default()
            };
            held(&form, sampling, drafts)
        });
        let mut counts = HashMap::new();
        for answer in run((scattered, scattered_at_times), rule, requests.collect()) {
            assert!(matches!(answer.finish, Some(FinishReason::Stop(_))));
            *counts.entry(text(&answer)).or_insert(0) += 1;
        }
        counts
    };
    let plain: HashMap<String, i64> = of(false, Rule::Standard);
    for rule in [Rule::Standard, Rule::Block] {
        let drafted = of(true, rule);
        for text in plain.keys().chain(drafted.keys()) {
            let of = |counts: &HashMap<String, i64>| counts.get(text).copied().unwrap_or(0);
            let (a, b) = (of(&plain), of(&drafted));
            // Five standard deviations of the difference of two counts.
            let bound = 5.0 * ((a + b) as f64).sqrt();
            assert!(((a - b) as f64).abs() <= bound, "{text:?}: {a} and {b} with drafts");
        }
    }
}

#[test]
fn a_form_over_another_vocabulary_is_refused() {
    let mut engine = engine((64, Rule::Standard), (scattered, scattered), options());
    let request = held(&grammar(&schema()), SamplingParameters::default(), false);
    let error = engine.add(Request { stop_ids: vec![], ..request }).unwrap_err();
    assert!(error.to_string().starts_with("form: masks of 64 words"), "{error}");
}
