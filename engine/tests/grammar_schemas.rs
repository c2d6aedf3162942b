//! Forms alone: random schemas, random logits, no model.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use tandem_engine::grammar::{CalledTool, Calls, Constraint, Form, Grammars, ReplyForm};
use tandem_engine::text::{
    ControlToken, GenerationEnd, ParseOptions, Reply, ReplyStart, ReplyStream, Tokenizer,
};

const VOCABULARY: u32 = 2048;
const SCHEMAS: u64 = 10_000;

static TOKENIZER: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::from_bytes(include_bytes!("../cli/demo/tokenizer.json")).unwrap());
static GRAMMARS: LazyLock<Grammars> =
    LazyLock::new(|| Grammars::new(&TOKENIZER, VOCABULARY).unwrap());

/// Splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31) % end
    }

    fn word(&mut self) -> String {
        let letters = ['a', 'b', 'é', '"', '\\', 'z', ' ', '鲸', '0', '\n'];
        (0..1 + self.below(4)).map(|_| letters[self.below(10) as usize]).collect()
    }

    fn scalar(&mut self) -> Value {
        match self.below(4) {
            0 => json!(self.word()),
            1 => json!(self.below(200)),
            2 => json!(self.below(2) == 1),
            _ => Value::Null,
        }
    }

    fn schema(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 7 } else { 11 }) {
            0 => json!({ "type": "boolean" }),
            1 => json!({ "type": ["null", "boolean"] }),
            2 => {
                let least = self.below(50);
                json!({ "type": "integer", "minimum": least, "maximum": least + self.below(500) })
            }
            3 => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": self.below(9) + 1 }),
            4 => {
                let least = self.below(4);
                json!({ "type": "string", "minLength": least, "maxLength": least + self.below(9) })
            }
            5 => {
                json!({ "enum": (0..1 + self.below(4)).map(|_| self.scalar()).collect::<Vec<_>>() })
            }
            6 => json!({ "const": self.scalar() }),
            7 => {
                let least = self.below(3);
                let items = self.schema(depth - 1);
                json!({ "type": "array", "items": items, "minItems": least,
                        "maxItems": least + self.below(3) })
            }
            8 => json!({ "anyOf": [self.schema(depth - 1), self.schema(depth - 1)] }),
            _ => {
                let mut properties = serde_json::Map::new();
                for _ in 0..self.below(5) {
                    properties.insert(self.word(), self.schema(depth - 1));
                }
                let names = properties.keys().filter(|_| self.below(2) == 1);
                let required: Vec<_> = names.cloned().collect();
                json!({ "type": "object", "properties": properties, "required": required,
                        "additionalProperties": false })
            }
        }
    }
}

/// Whether a value follows one of the schemas above.
fn follows(schema: &Value, value: &Value) -> bool {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|schema| follows(schema, value));
    }
    if let Some(one) = schema["enum"].as_array() {
        return one.contains(value);
    }
    if let Some(constant) = schema.get("const") {
        return constant == value;
    }
    let within = |least: &str, most: &str, found: f64| {
        schema[least].as_f64().is_none_or(|least| found >= least)
            && schema[most].as_f64().is_none_or(|most| found <= most)
    };
    match (schema["type"].as_str(), value) {
        (Some("boolean"), Value::Bool(_)) => true,
        (None, value) => value.is_null() || value.is_boolean(),
        (Some("integer"), value) => {
            value.as_f64().is_some_and(|n| n.fract() == 0.0 && within("minimum", "maximum", n))
        }
        (Some("number"), value) => {
            value.as_f64().is_some_and(|n| n > 0.0 && within("minimum", "maximum", n))
        }
        (Some("string"), Value::String(text)) => {
            within("minLength", "maxLength", text.chars().count() as f64)
        }
        (Some("array"), Value::Array(items)) => {
            within("minItems", "maxItems", items.len() as f64)
                && items.iter().all(|item| follows(&schema["items"], item))
        }
        (Some("object"), Value::Object(object)) => {
            let required = schema["required"].as_array().unwrap();
            required.iter().all(|name| object.contains_key(name.as_str().unwrap()))
                && object.iter().all(|(name, value)| {
                    schema["properties"].get(name).is_some_and(|schema| follows(schema, value))
                })
        }
        _ => false,
    }
}

/// The ids that may come next.
fn allowed(constraint: &mut Constraint) -> Vec<u32> {
    let mut mask = Vec::new();
    constraint.masks(&[], &mut mask).unwrap();
    assert_eq!(mask.len() as u32, VOCABULARY / 32);
    let mut ids = Vec::new();
    for (word, first) in mask.into_iter().zip((0..).step_by(32)) {
        let mut rest = word;
        while rest != 0 {
            ids.push(first + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
    ids
}

/// Looks at every seed below `count`, on every core; the sum of what `look` gives.
fn over_seeds(count: u64, look: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    sum.fetch_add(look(seed), Ordering::Relaxed);
                }
            });
        }
    });
    sum.into_inner()
}

/// Follows random logits to the end of the answer; after some tokens those that close come first.
/// Control tokens come in `calls` of tools alone.
fn answer(constraint: &mut Constraint, dice: &mut Dice, calls: bool) -> Vec<u32> {
    let end = TOKENIZER.control_token(ControlToken::Eos).unwrap();
    let closers: [&[u8]; 6] = [b"\"", b"}", b"]", b"</", b"<", b"/"];
    let closes = |id: &u32| {
        TOKENIZER.is_added(*id) || closers.contains(&TOKENIZER.token_bytes(*id).unwrap())
    };
    let mut ids = Vec::new();
    loop {
        let mut next = allowed(constraint);
        if ids.len() > 40 && next.iter().any(closes) {
            next.retain(closes);
        }
        let id = match next.contains(&end) && ids.len() > 40 {
            true => end,
            false => next[dice.below(next.len() as u64) as usize],
        };
        if id == end {
            return ids;
        }
        assert!(calls || !TOKENIZER.is_added(id), "control token {id}");
        constraint.accept(id).unwrap();
        ids.push(id);
        assert!(ids.len() < 4000, "no end: {}", text(&ids));
    }
}

fn plain(form: &Form) -> ReplyForm<'_> {
    ReplyForm { answer: Some(form), ..ReplyForm::default() }
}

/// Of one tool, with any arguments.
fn any_calls() -> Calls {
    let tools = vec![CalledTool { name: "look".into(), schema: None }];
    Calls { tools, several: true, begun: false }
}

fn text(ids: &[u32]) -> String {
    String::from_utf8(TOKENIZER.decode(ids).unwrap()).expect("an answer in a form is UTF-8")
}

#[test]
fn random_logits_never_leave_a_random_schema() {
    let start = Instant::now();
    let tokens = over_seeds(SCHEMAS, |seed| {
        let mut dice = Dice(seed);
        let schema = dice.schema(3);
        let form = Form::JsonSchema(schema.clone());
        let grammar = GRAMMARS.compile(plain(&form));
        let grammar = grammar.unwrap_or_else(|error| panic!("{seed}: {error}: {schema}"));
        let ids = answer(&mut grammar.start(), &mut dice, false);
        let value: Value = serde_json::from_str(&text(&ids))
            .unwrap_or_else(|error| panic!("{seed}: {error}: {} for {schema}", text(&ids)));
        assert!(follows(&schema, &value), "{seed}: {value} is not {schema}");
        ids.len() as u64
    });
    assert!(tokens > SCHEMAS);
    println!("{SCHEMAS} schemas, {tokens} tokens in {:.1} s", start.elapsed().as_secs_f64());
}

/// Masks of several places at once are those of the places one by one, whatever the drafts.
#[test]
fn masks_behind_drafts_are_those_of_the_answer() {
    let form = Form::JsonSchema(json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "enum": [1, 22, 333] } },
        "required": ["a", "b"],
    }));
    let close = TOKENIZER.control_token(ControlToken::ThinkClose).unwrap();
    let end = TOKENIZER.control_token(ControlToken::Eos).unwrap();
    for (seed, reasons) in (0..40).map(|seed| (seed, seed % 2 == 1)) {
        let calls = any_calls();
        let may_call = seed % 4 > 1;
        let reply = ReplyForm { calls: may_call.then_some(&calls), reasons, ..plain(&form) };
        let grammar = GRAMMARS.compile(reply).unwrap();
        let thought = if reasons { vec![300, 301, close] } else { vec![] };
        let mut dice = Dice(seed);
        let mut constraint = grammar.start();
        thought.iter().for_each(|id| constraint.accept(*id).unwrap());
        let mut ids = [thought, answer(&mut constraint, &mut dice, may_call)].concat();
        ids.push(end);
        // One by one.
        let mut alone = Vec::new();
        let mut constraint = grammar.start();
        for id in &ids {
            let mut mask = Vec::new();
            constraint.masks(&[], &mut mask).unwrap();
            alone.push(mask);
            if *id != end {
                constraint.accept(*id).unwrap();
            }
        }
        // With the next tokens as drafts, and with a wrong one in their midst.
        let mut constraint = grammar.start();
        for at in 0..ids.len() {
            let mut drafts = ids[at..ids.len().min(at + 5)].to_vec();
            let right = drafts.len();
            let mut masks = Vec::new();
            constraint.masks(&drafts, &mut masks).unwrap();
            let rows: Vec<_> = masks.chunks(VOCABULARY as usize / 32).collect();
            let known = right.min(alone.len() - at - 1) + 1;
            assert_eq!(rows[..known], alone[at..at + known], "at {at} of {}", text(&ids));
            let wrong = dice.below(right as u64) as usize;
            drafts[wrong] = 0;
            masks.clear();
            constraint.masks(&drafts, &mut masks).unwrap();
            let rows: Vec<_> = masks.chunks(VOCABULARY as usize / 32).collect();
            assert_eq!(rows[..=wrong], alone[at..=at + wrong]);
            assert!(
                rows[wrong + 1..].iter().flat_map(|row| row.iter()).all(|word| *word == u32::MAX)
            );
            if ids[at] != end {
                constraint.accept(ids[at]).unwrap();
            }
        }
    }
}

/// A model at a loss cannot fill its answer with blanks.
#[test]
fn blanks_of_json_are_few() {
    let form = Form::JsonSchema(json!({ "type": "array", "items": { "const": 1 } }));
    let mut constraint = GRAMMARS.compile(plain(&form)).unwrap().start();
    let blank = |id: &u32| TOKENIZER.token_bytes(*id).unwrap().iter().all(u8::is_ascii_whitespace);
    let mut bytes = 0;
    constraint.accept(TOKENIZER.encode("[").unwrap()[0]).unwrap();
    while let Some(id) = allowed(&mut constraint).into_iter().find(blank) {
        constraint.accept(id).unwrap();
        bytes += TOKENIZER.token_bytes(id).unwrap().len();
    }
    assert!((1..=43).contains(&bytes), "{bytes} blanks");
}

#[test]
fn forms_hold() {
    let of = |form: &Form, seed| {
        let grammar = GRAMMARS.compile(plain(form)).unwrap();
        text(&answer(&mut grammar.start(), &mut Dice(seed), false))
    };
    let texts = ["yes", "no", "\"per\u{200d}haps\"\n", "a | b"].map(str::to_owned);
    for seed in 0..50 {
        assert!(texts.contains(&of(&Form::Choice(texts.to_vec()), seed)));
        let date = of(&Form::Regex("[0-9]{4}/(0[1-9]|1[0-2])".into()), seed);
        let (year, month) = date.split_once('/').unwrap();
        assert!(year.len() == 4 && (1..=12).contains(&month.parse::<u8>().unwrap()), "{date}");
        let sum = of(&Form::Lark("start: N (\"+\" N)*\nN: /[0-9]{1,3}/".into()), seed);
        assert!(
            sum.split('+').all(|n| (1..=3).contains(&n.len()) && n.parse::<u16>().is_ok()),
            "{sum}"
        );
        let object: Value = serde_json::from_str(&of(&Form::JsonObject, seed)).unwrap();
        assert!(object.is_object());
    }
}

/// Reasoning is free text and must be closed; then the form begins.
#[test]
fn a_form_waits_for_the_end_of_the_reasoning() {
    let control = |token| TOKENIZER.control_token(token).unwrap();
    let yes = Form::Choice(vec!["yes".into()]);
    let grammar = GRAMMARS.compile(ReplyForm { reasons: true, ..plain(&yes) }).unwrap();
    let mut constraint = grammar.start();
    for _ in 0..3 {
        let next = allowed(&mut constraint);
        assert!(next.contains(&control(ControlToken::ThinkClose)) && next.len() > 1000);
        for token in [ControlToken::Eos, ControlToken::Dsml, ControlToken::User] {
            assert!(!next.contains(&control(token)), "{token:?}");
        }
        constraint.accept(next[7]).unwrap();
    }
    constraint.accept(control(ControlToken::ThinkClose)).unwrap();
    assert_eq!(text(&answer(&mut constraint, &mut Dice(1), false)), "yes");
}

/// With tools declared the model may call one instead of answering.
#[test]
fn a_form_leaves_room_for_tool_calls() {
    let (yes, calls) = (Form::Choice(vec!["yes".into()]), any_calls());
    let grammar = GRAMMARS.compile(ReplyForm { calls: Some(&calls), ..plain(&yes) }).unwrap();
    let marker = TOKENIZER.control_token(ControlToken::Dsml).unwrap();
    let encode = |text: &str| TOKENIZER.encode(text).unwrap();
    let call = [encode("\n\n<"), vec![marker], encode(" calls>\n<"), vec![marker]];
    let mut constraint = grammar.start();
    for id in call.concat() {
        assert!(allowed(&mut constraint).contains(&id), "{:?}", TOKENIZER.spelling(id));
        constraint.accept(id).unwrap();
    }
    let mut constraint = grammar.start();
    assert!(!allowed(&mut constraint).contains(&marker), "only behind <");
    assert!(!allowed(&mut constraint).contains(&encode("n")[0]));
}

#[test]
fn what_is_not_supported_is_named() {
    let refused = |form: Form| GRAMMARS.compile(plain(&form)).unwrap_err().to_string();
    for (schema, named) in [
        (json!({ "type": "array", "uniqueItems": true }), "uniqueItems"),
        (json!({ "type": "object", "properties": { "a": { "not": {} } } }), "not"),
        (json!({ "type": "string", "format": "zip-code" }), "zip-code"),
        (json!({ "type": "strin" }), "strin"),
        (json!({ "$ref": "#/$defs/none" }), "none"),
        (json!({ "$ref": "https://example.org/schema.json" }), "example.org"),
        (json!({ "type": "string", "pattern": "(" }), "unclosed"),
    ] {
        let error = refused(Form::JsonSchema(schema.clone()));
        assert!(error.contains(named) && error.lines().count() == 1, "{schema}: {error}");
        println!("{error}");
    }
    assert!(!refused(Form::Regex("(".into())).is_empty());
    assert!(!refused(Form::Lark("start: missing".into())).is_empty());
    // Strangers' schemas may be large or deep; that is an error at most, soon.
    let mut deep = json!({ "type": "boolean" });
    for _ in 0..100 {
        deep = json!({ "type": "array", "items": deep });
    }
    let wide = Form::Regex("(a{1,1000}){1,1000}".into());
    let start = Instant::now();
    let _ = GRAMMARS.compile(plain(&Form::JsonSchema(deep)));
    let _ = GRAMMARS.compile(plain(&wide));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

/// Calls by random logits, read as the server reads them.
#[test]
fn random_logits_make_calls_that_follow_their_schemas() {
    let calls = over_seeds(300, |seed| {
        let mut dice = Dice(seed);
        let schemas: Vec<_> = (0..2)
            .map(|_| {
                let mut properties = serde_json::Map::new();
                properties.insert("text".into(), json!({ "type": "string", "minLength": 0 }));
                for at in 0..dice.below(4) {
                    properties.insert(format!("p{at}"), dice.schema(2));
                }
                properties.insert("one".into(), json!({ "enum": ["a\n", "<b"] }));
                let names = properties.keys().filter(|_| dice.below(2) == 1);
                let required: Vec<_> = names.cloned().collect();
                json!({ "type": "object", "properties": properties, "required": required,
                        "additionalProperties": false })
            })
            .collect();
        let mut written = schemas.clone();
        // A plain string, which is written as it is.
        written.iter_mut().for_each(|schema| {
            schema["properties"]["text"] = json!({ "type": "string", "description": "any" });
        });
        let names = ["look", "find-it"];
        let tools = names
            .iter()
            .zip(written)
            .map(|(name, schema)| CalledTool { name: (*name).into(), schema: Some(schema) });
        let several = seed % 2 == 0;
        let calls = Calls { tools: tools.collect(), several, begun: true };
        let grammar = GRAMMARS.compile(ReplyForm { calls: Some(&calls), ..ReplyForm::default() });
        let ids = answer(&mut grammar.unwrap().start(), &mut dice, true);
        let mut stream = ReplyStream::new(ParseOptions {
            start: ReplyStart::ToolCalls,
            tool_calls: true,
            json: false,
            stop: vec![],
        });
        let mut reply = Reply::default();
        reply.extend(stream.push(&TOKENIZER, &ids));
        reply.extend(stream.finish(GenerationEnd::StopToken));
        assert!(reply.calls.len() == 1 || (several && reply.calls.len() > 1), "{}", text(&ids));
        for call in &reply.calls {
            let tool = names.iter().position(|name| *name == call.name).expect(&call.name);
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            assert!(call.complete && follows(&schemas[tool], &arguments), "{seed}: {arguments}");
        }
        reply.calls.len() as u64
    });
    assert!(calls > 300, "{calls} calls");
}

/// Strict tools under a free choice: any text, and calls that are well formed.
#[test]
fn calls_may_follow_any_text() {
    let calls = any_calls();
    let grammar = GRAMMARS.compile(ReplyForm { calls: Some(&calls), ..ReplyForm::default() });
    let grammar = grammar.unwrap();
    let marker = TOKENIZER.control_token(ControlToken::Dsml).unwrap();
    let end = TOKENIZER.control_token(ControlToken::Eos).unwrap();
    let encode = |text: &str| TOKENIZER.encode(text).unwrap();
    let mut constraint = grammar.start();
    for id in [encode("Let me see: 1 < 2.\n\n<"), vec![marker]].concat() {
        let next = allowed(&mut constraint);
        assert!(next.contains(&id) && next.contains(&end), "{:?}", TOKENIZER.spelling(id));
        constraint.accept(id).unwrap();
    }
    // From here on there is no way but a call.
    let call = [
        encode(" calls>\n<"),
        vec![marker],
        encode(" invoke name=\"look\">\n\n</"),
        vec![marker],
        encode(" invoke>\n</"),
        vec![marker],
        encode(" calls>"),
    ];
    for id in call.concat() {
        let next = allowed(&mut constraint);
        assert!(next.contains(&id) && !next.contains(&end), "{:?}", TOKENIZER.spelling(id));
        constraint.accept(id).unwrap();
    }
    assert_eq!(allowed(&mut constraint), [end]);
}

#[test]
fn arguments_that_are_not_supported_are_named() {
    for (schema, named) in [
        (json!({ "anyOf": [] }), "anyOf"),
        (json!({ "type": "array" }), "object"),
        (json!({ "properties": { "a": { "uniqueItems": true, "type": "array" } } }), "uniqueItems"),
        (json!({ "properties": {}, "required": ["a"] }), "\"a\""),
        (json!({ "properties": { "a\"b": { "type": "integer" } } }), "name"),
    ] {
        let tools = vec![CalledTool { name: "look".into(), schema: Some(schema) }];
        let calls = Calls { tools, several: false, begun: true };
        let refused = GRAMMARS.compile(ReplyForm { calls: Some(&calls), ..ReplyForm::default() });
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
