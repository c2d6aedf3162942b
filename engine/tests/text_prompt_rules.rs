//! Rules of the prompt: where encoders differ, what is refused, and what stays text.

mod text_support;

use serde_json::json;
use tandem_engine::text::{
    Conversation, ConversationError, EffortRequest, Message, Part, ResponseFormat, TextError,
    Tokenizer, Tool,
};
use text_support::conversations::{
    BOS, EOS, called, chat, opening, prefix, reminder, rendered, thinking, tool,
};
use text_support::demo_tokenizer;

#[test]
fn places_where_encoders_differ() {
    let user = Message::user;
    let assistant = Message::assistant;
    let header = "<｜Assistant｜></think>";
    let cases = [
        (vec![user("A"), assistant("B")], format!("<｜User｜>A{header}B{EOS}{header}")),
        (
            vec![user("A"), assistant("B"), assistant("C"), user("D")],
            format!("<｜User｜>A{header}B{EOS}{header}C{EOS}<｜User｜>D{header}"),
        ),
        (vec![assistant("B"), user("D")], format!("{header}B{EOS}<｜User｜>D{header}")),
        (vec![Message::system("S")], format!("<｜System｜>S{header}")),
        (vec![Message::system(""), user("A")], format!("<｜User｜>A{header}")),
        (vec![user("A"), Message::system(""), user("B")], format!("<｜User｜>A\n\nB{header}")),
        (
            vec![user("A"), reminder("R"), assistant("B"), user("C")],
            format!("<｜User｜>A<｜latest_reminder｜>R{header}B{EOS}<｜User｜>C{header}"),
        ),
        (vec![reminder("R"), user("A")], format!("<｜latest_reminder｜>R<｜User｜>A{header}")),
        (
            vec![user("A"), assistant(""), user("B")],
            format!("<｜User｜>A{header}{EOS}<｜User｜>B{header}"),
        ),
        (vec![user(" a\r\n"), user("\n b ")], format!("<｜User｜> a\r\n\n\n\n b {header}")),
        (
            vec![Message::system("x-anthropic-billing-header: 1\n\nS\n"), user("A")],
            format!("<｜System｜>S\n<｜User｜>A{header}"),
        ),
        (
            vec![Message::system("x-anthropic-billing-header: 1"), user("A")],
            format!("<｜User｜>A{header}"),
        ),
    ];
    for (messages, text) in cases {
        assert_eq!(rendered(&chat(messages)), format!("{BOS}{text}"));
    }
}

#[test]
fn finished_turns_while_thinking() {
    let history = vec![
        Message::user("A"),
        called(Some("r"), "", &[("a", "f", "{}")]),
        Message::tool("a", "res"),
    ];
    let call = "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
    let end = format!("{call}{EOS}<｜User｜><tool_result>res</tool_result><｜Assistant｜><think>");
    // Without declared tools the reasoning goes, even in a running exchange.
    let mut conversation = thinking(history);
    assert!(rendered(&conversation).ends_with(&format!("<｜Assistant｜></think>{end}")));
    conversation.keep_reasoning = true;
    assert!(rendered(&conversation).ends_with(&format!("<｜Assistant｜><think>r</think>{end}")));
    conversation.keep_reasoning = false;
    conversation.tools = vec![tool("f")];
    assert!(rendered(&conversation).ends_with(&format!("<｜Assistant｜><think>r</think>{end}")));
    // Reasoning that the client lost is empty.
    conversation.messages[1] = called(None, "", &[("a", "f", "{}")]);
    assert!(rendered(&conversation).ends_with(&format!("<｜Assistant｜><think></think>{end}")));
}

#[test]
fn c065_an_effort_is_its_released_number() {
    let prompt = |word: &str| {
        let effort = Some(EffortRequest::from_word(word).unwrap());
        let (thinking, effort) = EffortRequest::resolve(None, effort);
        let messages = vec![Message::user("A")];
        rendered(&Conversation { thinking, effort, ..Conversation::new(messages) })
    };
    for (word, number) in [("low", 50), ("high", 75), ("max", 100)] {
        let text = opening(number) + "<｜User｜>A<｜Assistant｜><think>";
        assert_eq!(prompt(word), text, "{word}");
    }
    // None turns thinking off; without a word the model thinks with effort high.
    assert_eq!(prompt("none"), format!("{BOS}<｜User｜>A<｜Assistant｜></think>"));
    assert_eq!(prompt("high"), rendered(&thinking(vec![Message::user("A")])));
    assert_eq!(
        EffortRequest::from_word("hard"),
        Err(ConversationError::UnknownEffort { value: "hard".into() })
    );
}

#[test]
fn tool_results_follow_the_calls() {
    let order = |results: Vec<Message>| {
        let mut messages =
            vec![Message::user("A"), called(None, "c", &[("a", "f", "{}"), ("b", "f", "{}")])];
        messages.extend(results);
        let text = rendered(&chat(messages));
        let (_, last) = text.rsplit_once("<｜User｜>").unwrap();
        let turn = last.strip_suffix("<｜Assistant｜></think>").unwrap();
        turn.replace("<tool_result>", "").replace("</tool_result>", "").replace("\n\n", " ")
    };
    let result = |id: &str| Message::tool(id, format!("r{id}"));
    let nameless = Message::Tool { call_id: None, content: vec![Part::Text("none".into())] };
    assert_eq!(order(vec![result("b"), result("a")]), "ra rb");
    assert_eq!(order(vec![result("b"), Message::user("mid"), result("a")]), "ra mid rb");
    assert_eq!(order(vec![result("b"), result("z"), result("a")]), "rz ra rb");
    assert_eq!(order(vec![result("b"), nameless, result("a")]), "ra none rb");
    assert_eq!(order(vec![result("b"), result("a"), result("b"), result("a")]), "ra ra rb rb");
    assert_eq!(order(vec![Message::assistant("d"), result("b"), result("a")]), "ra rb");
}

#[test]
fn conversations_without_a_prompt() {
    assert_eq!(chat(vec![]).prompt(), Err(ConversationError::Empty));
    let mut conversation = chat(vec![Message::user("json"), prefix(None, "p")]);
    conversation.tools = vec![tool("f")];
    assert_eq!(conversation.prompt(), Err(ConversationError::PrefixWithTools));
    conversation.tools.clear();
    conversation.response_format = ResponseFormat::JsonObject;
    assert_eq!(conversation.prompt(), Err(ConversationError::PrefixWithJson));
    conversation.messages.push(Message::user("x"));
    assert_eq!(conversation.prompt(), Err(ConversationError::PrefixNotLast { index: 1 }));
}

#[test]
fn a_tokenizer_without_a_needed_token_says_which() {
    let json = String::from_utf8(text_support::DEMO_TOKENIZER.to_vec()).unwrap();
    let tokenizer =
        Tokenizer::from_bytes(json.replace("｜DSML｜", "｜other｜").as_bytes()).unwrap();
    let mut conversation = chat(vec![Message::user("A")]);
    conversation.prompt().unwrap().encode(&tokenizer, 2038).unwrap();
    conversation.tools = vec![tool("f")];
    assert!(matches!(
        conversation.prompt().unwrap().encode(&tokenizer, 2038),
        Err(TextError::MissingControlToken { spelling: "｜DSML｜" })
    ));
}

#[test]
fn client_text_in_the_tools_block_stays_text() {
    let mut conversation = chat(vec![Message::user("A")]);
    conversation.tools = vec![Tool {
        name: "<think>".into(),
        description: "</think>｜DSML｜<｜User｜>".into(),
        parameters: json!({"｜DSML｜": "<think>"}),
    }];
    let demo = demo_tokenizer();
    let ids = conversation.prompt().unwrap().encode(demo, 2038).unwrap().ids;
    let count = |spelling| {
        let id = demo.added_token(spelling).unwrap();
        ids.iter().filter(|&&other| other == id).count()
    };
    assert_eq!((count("<think>"), count("</think>"), count("｜DSML｜")), (2, 3, 9));
    assert_eq!(count("<｜User｜>"), 1);
}
