//! Properties of the reply parser that hold for any output.

mod text_support;

use proptest::prelude::*;
use serde_json::Value;
use tandem_engine::text::{
    AssistantMessage, ControlToken, Conversation, Detokeniser, Event, FinishReason, GenerationEnd,
    Message, ParseOptions, Piece, Reply, ReplyParser, ReplyStart, ToolCall, reply_from_bytes,
};
use text_support::{demo_tokenizer, joined, options, reply, stream};

/// A part of an output, owned.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Token(ControlToken),
}

impl Part {
    fn piece(&self) -> Piece<'_> {
        match self {
            Part::Text(text) => Piece::Text(text),
            Part::Token(token) => {
                Piece::Token { control: Some(*token), spelling: token.spelling() }
            }
        }
    }
}

/// Texts of which outputs, good and bad, are made.
const SCRAPS: &[&str] = &[
    "\n",
    "\n\n",
    "<",
    "</",
    " calls>\n",
    " calls>",
    "tool_calls>",
    " invoke name=\"",
    "\">\n",
    " invoke>\n",
    " parameter name=\"",
    "\" string=\"",
    "true\">",
    "false\">",
    " parameter>\n",
    "key",
    "\"",
    "\\",
    "[1, 2]",
    "{",
    "}",
    "```json\n",
    "```",
    "\n```",
    "STOP",
    "ST",
    "OP",
    "é😊",
    " text",
    "</think>",
    "｜DSML｜",
    "1e5",
];

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        8 => prop::sample::select(SCRAPS).prop_map(|text| Part::Text(text.into())),
        1 => any::<String>().prop_map(Part::Text),
        3 => Just(Part::Token(ControlToken::Dsml)),
        1 => Just(Part::Token(ControlToken::ThinkClose)),
        1 => Just(Part::Token(ControlToken::User)),
    ]
}

/// A block that is well formed but for junk in places.
fn block() -> impl Strategy<Value = Vec<Part>> {
    let parameter = ("[a-z\"\\\\ é]{0,6}", any::<bool>(), part(), part()).prop_map(
        |(key, is_string, first, second)| {
            vec![
                Part::Text("<".into()),
                Part::Token(ControlToken::Dsml),
                Part::Text(format!(" parameter name=\"{key}\" string=\"{is_string}\">")),
                first,
                second,
                Part::Text("</".into()),
                Part::Token(ControlToken::Dsml),
                Part::Text(" parameter>\n".into()),
            ]
        },
    );
    let call = prop::collection::vec(parameter, 0..4).prop_map(|parameters| {
        let mut parts = vec![
            Part::Text("<".into()),
            Part::Token(ControlToken::Dsml),
            Part::Text(" invoke name=\"f\">\n".into()),
        ];
        parts.extend(parameters.into_iter().flatten());
        parts.push(Part::Text("</".into()));
        parts.push(Part::Token(ControlToken::Dsml));
        parts.push(Part::Text(" invoke>\n".into()));
        parts
    });
    prop::collection::vec(call, 1..3).prop_map(|calls| {
        let mut parts = vec![
            Part::Text("\n\n<".into()),
            Part::Token(ControlToken::Dsml),
            Part::Text(" calls>\n".into()),
        ];
        parts.extend(calls.into_iter().flatten());
        parts
    })
}

fn output() -> impl Strategy<Value = Vec<Part>> {
    let run = prop_oneof![
        4 => prop::collection::vec(part(), 0..12),
        2 => block(),
    ];
    prop::collection::vec(run, 0..4).prop_map(|runs| runs.into_iter().flatten().collect())
}

fn parse_options() -> impl Strategy<Value = ParseOptions> {
    let start = prop::sample::select(vec![
        ReplyStart::Reasoning,
        ReplyStart::ReasoningContinuation,
        ReplyStart::Content,
        ReplyStart::ContentContinuation,
        ReplyStart::ToolCalls,
    ]);
    let stop = prop::sample::select(vec![
        vec![],
        vec!["STOP".to_owned()],
        vec!["\n<".to_owned(), "x\n\n".into(), "```".into(), "é😊".into()],
    ]);
    (start, any::<bool>(), any::<bool>(), stop)
        .prop_map(|(start, tool_calls, json, stop)| ParseOptions { start, tool_calls, json, stop })
}

fn end() -> impl Strategy<Value = GenerationEnd> {
    prop::sample::select(vec![GenerationEnd::StopToken, GenerationEnd::Limit])
}

fn events(options: &ParseOptions, parts: &[Part], end: GenerationEnd) -> Vec<Event> {
    let mut parser = ReplyParser::new(options.clone());
    let mut events: Vec<Event> =
        parts.iter().flat_map(|part| parser.push([part.piece()])).collect();
    events.extend(parser.finish(end));
    joined(events)
}

/// The parts with neighbouring texts joined and then cut after every character for which `cuts`
/// says so.
fn recut(parts: &[Part], cuts: &[bool]) -> Vec<Part> {
    let mut recut = Vec::new();
    let mut text = String::new();
    let mut cuts = cuts.iter().cycle();
    for part in parts {
        match part {
            Part::Text(more) => {
                for character in more.chars() {
                    text.push(character);
                    if cuts.next() == Some(&true) {
                        recut.push(Part::Text(std::mem::take(&mut text)));
                    }
                }
            }
            Part::Token(token) => {
                recut.push(Part::Text(std::mem::take(&mut text)));
                recut.push(Part::Token(*token));
            }
        }
    }
    recut.push(Part::Text(text));
    recut
}

fn check_reply(reply: &Reply) -> Result<(), TestCaseError> {
    for call in reply.calls.iter().filter(|call| call.complete) {
        let arguments = serde_json::from_str::<Value>(&call.arguments);
        prop_assert!(arguments.is_ok_and(|value| value.is_object()), "{}", call.arguments);
    }
    let finish = reply.finish;
    prop_assert!(finish.is_some());
    prop_assert!(finish != Some(FinishReason::ToolCalls) || !reply.calls.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn cuts_do_not_matter(
        options in parse_options(),
        parts in output(),
        cuts in prop::collection::vec(any::<bool>(), 1..40),
        end in end(),
    ) {
        let expected = events(&options, &parts, end);
        prop_assert_eq!(&events(&options, &recut(&parts, &cuts), end), &expected);
        prop_assert_eq!(&events(&options, &recut(&parts, &[true]), end), &expected);
        check_reply(&reply(expected))?;
    }

    #[test]
    fn any_bytes_have_a_reply(data in prop::collection::vec(any::<u8>(), 0..300)) {
        check_reply(&reply_from_bytes(&data))?;
    }

    #[test]
    fn finished_parsers_say_no_more(options in parse_options(), parts in output(), end in end()) {
        let mut parser = ReplyParser::new(options);
        for part in &parts {
            parser.push([part.piece()]);
        }
        parser.finish(end);
        prop_assert!(parser.is_finished() && parser.is_discarding());
        for part in &parts {
            prop_assert!(parser.push([part.piece()]).is_empty());
        }
        prop_assert!(parser.finish(end).is_empty());
    }

    #[test]
    fn detokenising_in_any_cut_is_lossy_decoding(
        bytes in prop_oneof![
            any::<String>().prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..40),
        ],
        cuts in prop::collection::vec(1..5_usize, 1..10),
    ) {
        let mut detokeniser = Detokeniser::default();
        let mut text = String::new();
        let mut rest = bytes.as_slice();
        for &cut in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let (token, after) = rest.split_at(cut.min(rest.len()));
            detokeniser.push(token, &mut text);
            rest = after;
        }
        detokeniser.close(&mut text);
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(SCRAPS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A call written into a prompt reads back as the same call, and writes the same bytes again.
    #[test]
    fn calls_survive_the_round_trip(
        content in "[a-z<]{0,5}",
        members in prop::collection::vec(("[a-z\\\\ é<]{0,6}", json_value()), 0..5),
    ) {
        let arguments = Value::Object(members.into_iter().collect());
        let prompt = |content: String, arguments: String| {
            let call = ToolCall { id: "a".into(), name: "f".into(), arguments };
            let said = AssistantMessage { content, calls: vec![call], ..AssistantMessage::default() };
            let messages = vec![Message::user("A"), Message::Assistant(said)];
            Conversation { thinking: false, ..Conversation::new(messages) }.prompt().unwrap()
        };
        let written = prompt(content.clone(), arguments.to_string());
        let demo = demo_tokenizer();
        let ids = written.encode(demo, 2038).unwrap().ids;
        let eos = demo.control_token(ControlToken::Eos).unwrap();
        let open = demo.control_token(ControlToken::ThinkClose).unwrap();
        let from = ids.iter().position(|&id| id == open).unwrap() + 1;
        let to = ids.iter().position(|&id| id == eos).unwrap();
        let options = options(ReplyStart::Content);
        let read = reply(stream(demo, &options, &ids[from..to], 1, GenerationEnd::StopToken));
        prop_assert_eq!(read.calls.len(), 1);
        prop_assert_eq!(&serde_json::from_str::<Value>(&read.calls[0].arguments).unwrap(), &arguments);
        let again = prompt(read.content, read.calls[0].arguments.clone());
        prop_assert_eq!(again.to_string(), written.to_string());
    }
}
