//! Stream traces against the published parser's, and the field cases about replies.

mod text_support;

use serde_json::{Value, json};
use tandem_engine::text::{
    Event, FinishReason, GenerationEnd, ParseOptions, Reply, ReplyStart, Tokenizer,
};
use text_support::{
    bytewise, demo_tokenizer, every_split, joined, options, production_tokenizer, reply, reply_ids,
};

/// A block of one call, from the line ends before it.
const CALL: &str = "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" string=\"true\">v</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";

fn reasoning(text: &str) -> Event {
    Event::Reasoning(text.into())
}

fn content(text: &str) -> Event {
    Event::Content(text.into())
}

fn start(call: usize, name: &str) -> Event {
    Event::CallStart { call, name: name.into() }
}

fn arguments(call: usize, fragment: &str) -> Event {
    Event::CallArguments { call, fragment: fragment.into() }
}

fn with_stop(start: ReplyStart, stop: &[&str]) -> ParseOptions {
    ParseOptions { stop: stop.iter().copied().map(String::from).collect(), ..options(start) }
}

fn json_options(start: ReplyStart) -> ParseOptions {
    ParseOptions { json: true, ..options(start) }
}

/// The events of a reply, `per_push` ids at a time; they do not depend on how the ids, or their bytes, are split.
#[track_caller]
fn stream(
    tokenizer: &Tokenizer,
    options: &ParseOptions,
    ids: &[u32],
    per_push: usize,
    end: GenerationEnd,
) -> Vec<Event> {
    let events = text_support::stream(tokenizer, options, ids, per_push, end);
    every_split(tokenizer, options, ids);
    let bytes = bytewise(tokenizer, ids);
    // Of both tokenizers they are the same.
    if std::ptr::eq(tokenizer, demo_tokenizer()) {
        every_split(tokenizer, options, &bytes);
    }
    let of_bytes = text_support::stream(tokenizer, options, &bytes, 1, end);
    assert_eq!(joined(of_bytes), joined(events.clone()), "byte by byte");
    events
}

/// The whole reply to ids that spell `text`; the same for both tokenizers and any split.
#[track_caller]
fn parsed(options: &ParseOptions, text: &str, end: GenerationEnd) -> Reply {
    let demo = demo_tokenizer();
    let ids = reply_ids(demo, text);
    let expected = joined(stream(demo, options, &ids, 1, end));
    if let Some(production) = production_tokenizer() {
        let ids = reply_ids(production, text);
        assert_eq!(joined(stream(production, options, &ids, 1, end)), expected);
    }
    reply(expected)
}

fn chat(text: &str) -> Reply {
    parsed(&options(ReplyStart::Content), text, GenerationEnd::StopToken)
}

fn thinking(text: &str) -> Reply {
    parsed(&options(ReplyStart::Reasoning), text, GenerationEnd::StopToken)
}

/// Events of production ids, one per push.
fn trace(
    production: &Tokenizer,
    options: &ParseOptions,
    text: &str,
    end: GenerationEnd,
) -> Vec<Event> {
    stream(production, options, &reply_ids(production, text), 1, end)
}

#[test]
fn s1_line_ends_around_the_tag_vanish() {
    let answer = thinking("\nHmm.\n\n</think>\n\nHello!");
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("Hmm.", "Hello!"));
    assert_eq!(answer.finish, Some(FinishReason::Stop));
    let Some(production) = production_tokenizer() else { return };
    let ids = [201, 42, 6002, 339, 128_822, 271, 19923, 3];
    let events =
        stream(production, &options(ReplyStart::Reasoning), &ids, 1, GenerationEnd::StopToken);
    let expected = [
        reasoning("H"),
        reasoning("mm"),
        reasoning("."),
        content("Hello"),
        content("!"),
        Event::Finish(FinishReason::Stop),
    ];
    assert_eq!(events, expected);
    assert_eq!(reply(events).reasoning_tokens(production).unwrap(), 3);
}

#[test]
fn s2_two_calls_then_text() {
    let text = "Need tool.</think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get_weather\">\n<｜DSML｜ parameter name=\"city\" string=\"true\">Pa\"ris</｜DSML｜ parameter>\n<｜DSML｜ parameter name=\"days\" string=\"false\">2</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"noargs\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>trailing";
    let demo = demo_tokenizer();
    let end = GenerationEnd::StopToken;
    let ids = reply_ids(demo, text);
    let expected = [
        reasoning("Need tool."),
        start(0, "get_weather"),
        arguments(0, r#"{"city": "Pa\"ris", "days": 2}"#),
        Event::CallEnd { call: 0 },
        start(1, "noargs"),
        arguments(1, "{}"),
        Event::CallEnd { call: 1 },
        Event::Finish(FinishReason::ToolCalls),
    ];
    let options = options(ReplyStart::Reasoning);
    assert_eq!(joined(stream(demo, &options, &ids, 1, end)), expected);
    let Some(production) = production_tokenizer() else { return };
    assert_eq!(reply_ids(production, text).len(), 74);
    let events = trace(production, &options, text, end);
    assert_eq!(events[..3], [reasoning("Need"), reasoning(" tool"), reasoning(".")]);
    let fragments: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::CallArguments { call: 0, fragment } => Some(fragment.as_str()),
            _ => None,
        })
        .collect();
    // The published parser sends the same characters in the same order, some of them one by one.
    assert_eq!(
        fragments,
        ["{\"", "city", "\": ", "\"", "Pa", "\\\"", "ris", "\"", ", \"", "days", "\": ", "2", "}"]
    );
    assert_eq!(joined(events), expected);
}

#[test]
fn s3_and_c067_block_inside_the_reasoning() {
    let answer = thinking(&format!("abc{CALL}"));
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("abc", ""));
    assert_eq!(answer.calls[0].arguments, r#"{"a": "v"}"#);
    assert_eq!(answer.finish, Some(FinishReason::ToolCalls));
    // Closing the reasoning behind the block changes nothing.
    let answer = thinking(&format!("Let me check{CALL}</think>ok"));
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("Let me check", ""));
    assert_eq!(answer.calls.len(), 1);
    assert!(answer.calls[0].complete);
}

#[test]
fn s4_cut_while_reasoning() {
    let options = options(ReplyStart::Reasoning);
    let answer = parsed(&options, "thinking and thinking\n", GenerationEnd::Limit);
    assert_eq!(answer.reasoning, "thinking and thinking\n");
    assert_eq!((answer.content.as_str(), answer.finish), ("", Some(FinishReason::Length)));
}

#[test]
fn s5_json_mode() {
    let options = json_options(ReplyStart::Content);
    let text = "Here is:\n```json\n{\"a\": 1}\n```\nbye";
    let answer = parsed(&options, text, GenerationEnd::StopToken);
    assert_eq!(answer.content, " {\"a\": 1} ");
    let Some(production) = production_tokenizer() else { return };
    let ids = reply_ids(production, text);
    let events = stream(production, &options, &ids, 3, GenerationEnd::StopToken);
    let stop = Event::Finish(FinishReason::Stop);
    assert_eq!(events, [content(" "), content("{\"a\":"), content(" 1}"), content(" "), stop]);
}

#[test]
fn json_mode_like_the_published_parser() {
    let cases = [
        ("{\"a\": 1}", "{\"a\": 1}"),
        ("x {\"a\": [1,2]} bye {\"b\":1}", " {\"a\": [1,2]} bye {\"b\":1}"),
        ("```\n[1]\n```\nbye", "[1] "),
        ("text only", " "),
        ("\n\n", ""),
        ("\n\n```json\n{\"a\": \"```x\"}\n```", "{\"a\": \"```x\"}"),
        ("```json[1, 2]``` x", " [1, 2]``` x"),
        ("```json\n{}```x", "{}```x"),
        ("```JSON\n{}\n```", " {}"),
        ("{}\n```\n", "{} "),
        ("```\n\n{}\n```", "\n{}"),
        ("````json\n{}\n```x", " {} "),
        ("```json\n{}\n``", "{}\n``"),
        ("```json\n```x", "```x"),
        ("```json\n{}\n``` ```json\n{}", "{} "),
        ("```json\n{}\n```\n", "{} "),
        ("```js", " "),
        ("a ` b {\"x\":1}", " {\"x\":1}"),
        ("a</think>{}", " {}"),
        ("</think>{}", "{}"),
        ("{\"a\": \"</think> <｜DSML｜ x\"}", "{\"a\": \"</think> <｜DSML｜ x\"}"),
    ];
    let options = json_options(ReplyStart::Content);
    for (text, expected) in cases {
        let answer = parsed(&options, text, GenerationEnd::StopToken);
        assert_eq!(answer.content, expected, "{text:?}");
    }
    let answer =
        parsed(&json_options(ReplyStart::Reasoning), "r {}</think>x {}", GenerationEnd::StopToken);
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("r {}", " {}"));
    for text in [format!(" {CALL}"), format!("```json\n{{}}\n```{CALL}"), CALL.to_owned()] {
        let answer = parsed(&options, &text, GenerationEnd::StopToken);
        assert_eq!(answer.calls.len(), 1, "{text:?}");
        assert_eq!(answer.finish, Some(FinishReason::ToolCalls));
    }
    let stop = ParseOptions { json: true, ..with_stop(ReplyStart::Content, &["STOP"]) };
    let answer = parsed(&stop, "STOP {\"a\": \"STOP\"}", GenerationEnd::StopToken);
    assert_eq!(answer.content, " {\"a\": \"");
}

#[test]
fn s6_stop_string() {
    let options = with_stop(ReplyStart::Content, &["STOP"]);
    let text = "one two STOP three";
    let answer = parsed(&options, text, GenerationEnd::Limit);
    assert_eq!((answer.content.as_str(), answer.finish), ("one two ", Some(FinishReason::Stop)));
    let Some(production) = production_tokenizer() else { return };
    let stop = Event::Finish(FinishReason::Stop);
    assert_eq!(
        trace(production, &options, text, GenerationEnd::Limit),
        [content("one"), content(" two"), content(" "), stop]
    );
}

#[test]
fn s7_stop_strings_are_for_the_answer() {
    let options = with_stop(ReplyStart::Reasoning, &["STOP"]);
    let answer = parsed(&options, "one STOP two</think>a STOP b", GenerationEnd::StopToken);
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("one STOP two", "a "));
}

#[test]
fn s8_spelled_markers_are_text() {
    let demo = demo_tokenizer();
    let tag = demo.encode("</think>").unwrap();
    let ids = [&reply_ids(demo, "a ")[..], &tag, &reply_ids(demo, " b</think>c")].concat();
    let options = options(ReplyStart::Reasoning);
    let answer = reply(stream(demo, &options, &ids, 1, GenerationEnd::StopToken));
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("a </think> b", "c"));
    let block = demo.encode(CALL).unwrap();
    let answer = reply(stream(demo, &options, &block, 1, GenerationEnd::StopToken));
    assert_eq!(answer.reasoning, CALL.trim_start());
    assert!(answer.calls.is_empty());
    let Some(production) = production_tokenizer() else { return };
    let ids = [1718, 37947, 32, 128_822, 19923];
    let answer = reply(stream(production, &options, &ids, 1, GenerationEnd::StopToken));
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("</think>", "Hello"));
}

#[test]
fn s9_cut_inside_a_parameter() {
    let options = options(ReplyStart::Content);
    let text = "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"q\" string=\"true\">ab";
    for (cut, end) in
        [("", r#"{"q": "ab"#), ("</", r#"{"q": "ab</"#), ("</｜DSML｜", r#"{"q": "ab""#)]
    {
        let answer = parsed(&options, &format!("{text}{cut}"), GenerationEnd::Limit);
        assert_eq!(answer.calls[0].arguments, end);
        assert!(!answer.calls[0].complete);
        assert_eq!(answer.finish, Some(FinishReason::Length));
    }
    // The name in the closing tag is enough.
    let cut = format!("{text}</｜DSML｜ parameter>\n</｜DSML｜ invoke");
    let answer = parsed(&options, &cut, GenerationEnd::Limit);
    assert_eq!(answer.calls[0].arguments, r#"{"q": "ab"}"#);
    assert!(answer.calls[0].complete);
    let json = text.replace("true", "false");
    let answer = parsed(&options, &json, GenerationEnd::Limit);
    assert_eq!(answer.calls[0].arguments, r#"{"q": ab"#);
}

#[test]
fn markup_that_is_not_quite_right() {
    let call = |inside: &str| {
        chat(&format!(
            "a\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">{inside}</｜DSML｜ calls>zz"
        ))
    };
    let arguments = |inside: &str| call(inside).calls[0].arguments.clone();
    let p = |key: &str, attribute: &str, value: &str| {
        format!("<｜DSML｜ parameter name=\"{key}\"{attribute}>{value}</｜DSML｜ parameter>\n")
    };
    let is_string = " string=\"true\"";
    let is_json = " string=\"false\"";
    let close = "</｜DSML｜ invoke>\n";
    // Junk between tags, a missing closing tag, a missing or unknown attribute.
    assert_eq!(arguments(&format!("junk\n{}junk{close}", p("a", is_string, "v"))), r#"{"a": "v"}"#);
    assert_eq!(arguments(&p("a", is_string, "v")), r#"{"a": "v"}"#);
    assert_eq!(arguments(&format!("{}{close}", p("a", "", "v"))), r#"{"a": "v"}"#);
    assert_eq!(arguments(&format!("{}{close}", p("a", "", "3"))), r#"{"a": 3}"#);
    assert_eq!(arguments(&format!("{}{close}", p("a", " string=\"maybe\"", "3"))), r#"{"a": 3}"#);
    // A second call although the first was not closed.
    let two = call(&format!("{}<｜DSML｜ invoke name=\"g\">\n{close}", p("a", is_json, "[1,2]")));
    assert_eq!(two.calls.len(), 2);
    assert!(two.calls.iter().all(|call| call.complete));
    assert_eq!((two.calls[1].name.as_str(), two.calls[1].arguments.as_str()), ("g", "{}"));
    assert_eq!(two.content, "a");
    // A value closed by the tag of its call; markers and thinking tags inside a value.
    let early = "<｜DSML｜ parameter name=\"a\" string=\"true\">v</｜DSML｜ invoke>\n";
    assert_eq!(arguments(early), r#"{"a": "v"}"#);
    let inner = p("a", is_string, "v <｜DSML｜ x <think>y</think>");
    assert_eq!(arguments(&inner), r#"{"a": "v <｜DSML｜ x <think>y</think>"}"#);
    // Keys with quotes, spaces and control characters are escaped.
    assert_eq!(arguments(&p(" string= m\"x ", is_string, "v")), r#"{" string= m\"x ": "v"}"#);
    assert_eq!(arguments(&p("a\\\n", is_string, "v")), r#"{"a\\\n": "v"}"#);
    // A block with something else in it, or nothing.
    for text in
        ["a\n\n<｜DSML｜ foo>bar", "a<｜DSML｜", "a<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f"]
    {
        let answer = chat(text);
        assert_eq!((answer.content.as_str(), answer.calls.len()), ("a", 0), "{text:?}");
        assert_eq!(answer.finish, Some(FinishReason::Stop));
    }
}

#[test]
fn text_around_markers_like_the_published_parser() {
    for (text, expected) in [
        ("a\n\nb", "a\n\nb"),
        ("\n\na\n\n", "a\n\n"),
        ("a\n\n<b", "a\n\n<b"),
        ("a\n\n<", "a\n\n<"),
        ("a<<\n<", "a<<\n<"),
        ("a ｜DSML｜ b", "a ｜DSML｜ b"),
        ("a<think>b</think>c", "a<think>bc"),
        ("a\n</think>\nb", "a\n\nb"),
    ] {
        assert_eq!(chat(text).content, expected, "{text:?}");
    }
    for (text, thought, said) in [
        ("x</think>\n\n</think>\n\nyy</think>zz", "x", "\n\nyyzz"),
        ("x</think>\ny</think>\n\nyy", "x", "y\n\nyy"),
        ("<think>x<think>y</think>z", "<think>x<think>y", "z"),
        ("x\n\ny\n\n</think>\n\nz", "x\n\ny", "z"),
        ("x\n<</think>z", "x\n<", "z"),
    ] {
        let answer = thinking(text);
        assert_eq!(
            (answer.reasoning.as_str(), answer.content.as_str()),
            (thought, said),
            "{text:?}"
        );
    }
    let no_tools = ParseOptions { tool_calls: false, ..options(ReplyStart::Content) };
    let answer = parsed(&no_tools, &format!("a{CALL}"), GenerationEnd::StopToken);
    assert_eq!(answer.content, format!("a{CALL}"));
    for (start, thought, said) in [
        (ReplyStart::ReasoningContinuation, "\n\nx", "y"),
        (ReplyStart::ContentContinuation, "", "\n\nx\ny"),
    ] {
        let answer = parsed(&options(start), "\n\nx</think>\ny", GenerationEnd::StopToken);
        assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), (thought, said));
    }
}

#[test]
fn block_opened_by_the_prompt() {
    let options = options(ReplyStart::ToolCalls);
    let inside = "<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
    for text in [inside.to_owned(), format!("\n\n<｜DSML｜ calls>\n{inside}")] {
        let answer = parsed(&options, &text, GenerationEnd::StopToken);
        assert_eq!(answer.calls[0].arguments, "{}");
        assert_eq!(answer.finish, Some(FinishReason::ToolCalls));
    }
    let answer = parsed(&options, "no call", GenerationEnd::StopToken);
    assert_eq!(answer.finish, Some(FinishReason::Stop));
}

#[test]
fn c063_c064_characters_over_tokens() {
    let demo = demo_tokenizer();
    let options = options(ReplyStart::Content);
    for text in ["hi 😊 there", "你 好", "e\u{301}🙂👍"] {
        let ids = demo.encode(text).unwrap();
        let events = stream(demo, &options, &ids, 1, GenerationEnd::StopToken);
        assert!(!format!("{events:?}").contains('\u{FFFD}'), "{events:?}");
        assert_eq!(reply(events).content, text);
    }
    // Cut in the middle of the emoji: the half is not shown, streaming or not.
    let ids = demo.encode("hi😊").unwrap();
    let cut = &ids[..ids.len() - 1];
    assert!(String::from_utf8(demo.decode(cut).unwrap()).is_err());
    for per_push in [1, usize::MAX] {
        let answer = reply(stream(demo, &options, cut, per_push, GenerationEnd::Limit));
        assert_eq!((answer.content.as_str(), answer.finish), ("hi", Some(FinishReason::Length)));
    }
    // A byte that can never become valid, and an id without an entry.
    let stray = (0..2048)
        .find(|&id| demo.token_bytes(id).is_ok_and(|bytes| bytes == b"\xFF"))
        .expect("the byte alphabet is in the vocabulary");
    let ids = [&demo.encode("a").unwrap()[..], &[stray, 9999], &demo.encode("b").unwrap()].concat();
    let answer = reply(stream(demo, &options, &ids, 1, GenerationEnd::StopToken));
    assert_eq!(answer.content, "a\u{FFFD}\u{FFFD}b");
}

#[test]
fn c066_current_and_previous_spelling() {
    let current = chat(&format!("a{CALL}"));
    assert_eq!(current.calls.len(), 1);
    // The previous release's tags are accepted on purpose.
    let previous = CALL.replace("｜ calls", "｜tool_calls").replace("｜ ", "｜");
    let previous = chat(&format!("a{previous}zz"));
    assert_eq!(previous, current);
}

#[test]
fn c069_odd_values_arrive_unchanged() {
    for value in
        ["Paris", "a<b </ 2>&1 </b>\n\n", "<", "</", "<//<", "</｜", "", "\"\\\n\t\u{1}é😊"]
    {
        let text = CALL.replace(">v<", &format!(">{value}<"));
        let answer = chat(&text);
        let arguments: Value = serde_json::from_str(&answer.calls[0].arguments).unwrap();
        assert_eq!(arguments, json!({ "a": value }));
    }
}

#[test]
fn c070_typed_parameters() {
    let parameter = |key: &str, is_string: bool, value: &str| {
        format!(
            "<｜DSML｜ parameter name=\"{key}\" string=\"{is_string}\">{value}</｜DSML｜ parameter>\n"
        )
    };
    let parameters = [
        ("x", true, "003", json!("003")),
        ("n", false, "3", json!(3)),
        ("l", false, "[1,2]", json!([1, 2])),
        ("t", true, "a \"quote\" and\na newline", json!("a \"quote\" and\na newline")),
        ("e", true, "", json!("")),
        // Marked as JSON but invalid: strings.
        ("bad", false, "{oops", json!("{oops")),
        ("none", false, "", json!("")),
        ("two", false, "1,2", json!("1,2")),
        ("nan", false, "NaN", json!("NaN")),
        ("huge", false, "1e999", json!("1e999")),
        ("map", false, "{\"k\": [true, null]}", json!({ "k": [true, null] })),
    ];
    for few in parameters.chunks(2) {
        let written: Vec<_> = few
            .iter()
            .map(|(key, is_string, value, _)| parameter(key, *is_string, value))
            .collect();
        let answer = chat(&format!(
            "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n{}</｜DSML｜ invoke>\n</｜DSML｜ calls>",
            written.concat()
        ));
        let arguments: Value = serde_json::from_str(&answer.calls[0].arguments).unwrap();
        let read = few.iter().map(|(key, _, _, read)| ((*key).to_owned(), read.clone()));
        assert_eq!(arguments, Value::Object(read.collect()));
    }
}

#[test]
fn c071_stop_strings_over_token_borders() {
    let said = |stop: &[&str], text: &str| {
        let answer = parsed(&with_stop(ReplyStart::Content, stop), text, GenerationEnd::Limit);
        (answer.content, answer.finish)
    };
    let stopped = |text: &str| (text.to_owned(), Some(FinishReason::Stop));
    let cut = |text: &str| (text.to_owned(), Some(FinishReason::Length));
    let text = "The quick brown fox jumps";
    assert_eq!(said(&["own fox"], text), stopped("The quick br"));
    assert_eq!(said(&["ZZ", "k br"], text), stopped("The quic"));
    assert_eq!(said(&["👍"], "hi 🙂👍 there"), stopped("hi 🙂"));
    assert_eq!(said(&["abd"], "abcabd x"), stopped("abc"));
    assert_eq!(said(&["\n<"], "a\n\n<b>c"), stopped("a\n"));
    assert_eq!(said(&["</"], "hi </｜DSML｜ x"), stopped("hi "));
    assert_eq!(said(&["", "<think>"], "hi <think> x"), cut("hi <think> x"));
    // Held text does not join on across a control token.
    assert_eq!(said(&["STOP"], "ab ST</think>OP cd"), cut("ab STOP cd"));
    let tool = format!("ab ST{CALL}");
    let answer =
        parsed(&with_stop(ReplyStart::Content, &["STOP"]), &tool, GenerationEnd::StopToken);
    assert_eq!((answer.content.as_str(), answer.calls.len()), ("ab ST", 1));
}

#[test]
fn c072_held_text_is_delivered() {
    let options = with_stop(ReplyStart::Reasoning, &["\n\nUser:"]);
    for (end, reason) in [
        (GenerationEnd::StopToken, FinishReason::Stop),
        (GenerationEnd::Limit, FinishReason::Length),
    ] {
        let answer = parsed(&options, "think</think>Mars?\n\nUs", end);
        assert_eq!((answer.content.as_str(), answer.finish), ("Mars?\n\nUs", Some(reason)));
        let answer = parsed(&options, "think</think>Mars?\n\nUser: x", end);
        assert_eq!((answer.content.as_str(), answer.finish), ("Mars?", Some(FinishReason::Stop)));
    }
    // The blank line that a stop string waits for belongs to the block when one follows.
    let answer = parsed(&options, &format!("t</think>Mars?{CALL}"), GenerationEnd::StopToken);
    assert_eq!((answer.content.as_str(), answer.calls.len()), ("Mars?", 1));
}
