//! What the text tests share: the tokenizers, and driving a reply stream.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod conversations;

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use tandem_engine::text::{
    ControlToken, Event, GenerationEnd, ParseOptions, Reply, ReplyStart, ReplyStream, Tokenizer,
};

/// The tokenizer.json of the demo checkpoint.
pub const DEMO_TOKENIZER: &[u8] = include_bytes!("../../cli/demo/tokenizer.json");

/// Where `cargo xtask fetch tokenizer` puts the production tokenizer.
const PRODUCTION_PATH: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../target/fetched/tokenizer/tokenizer.json");

/// The demo tokenizer: 2048 ids, every control token.
pub fn demo_tokenizer() -> &'static Tokenizer {
    static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
        Tokenizer::from_bytes(DEMO_TOKENIZER).expect("the demo tokenizer is part of the repository")
    });
    &TOKENIZER
}

/// The production tokenizer, or `None` after saying why the test is skipped.
pub fn production_tokenizer() -> Option<&'static Tokenizer> {
    static TOKENIZER: LazyLock<Option<Tokenizer>> = LazyLock::new(|| {
        Path::new(PRODUCTION_PATH)
            .exists()
            .then(|| Tokenizer::from_file(PRODUCTION_PATH).expect("the fetched tokenizer loads"))
    });
    if TOKENIZER.is_none() {
        println!("SKIPPED: no {PRODUCTION_PATH}; run `cargo xtask fetch tokenizer`");
    }
    TOKENIZER.as_ref()
}

/// Ids of a reply in which the spellings of `<think>`, `</think>` and the markup's marker mean the
/// control tokens.
pub fn reply_ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let markers = [ControlToken::ThinkOpen, ControlToken::ThinkClose, ControlToken::Dsml];
    let mut ids = Vec::new();
    let mut rest = text;
    while let Some((at, token)) = markers
        .iter()
        .filter_map(|&token| Some((rest.find(token.spelling())?, token)))
        .min_by_key(|&(at, _)| at)
    {
        ids.extend(tokenizer.encode(&rest[..at]).expect("test text encodes"));
        ids.push(tokenizer.control_token(token).expect("test tokenizers have the markers"));
        rest = &rest[at + token.spelling().len()..];
    }
    ids.extend(tokenizer.encode(rest).expect("test text encodes"));
    ids
}

/// Options at `start` with tool calls and nothing else.
pub fn options(start: ReplyStart) -> ParseOptions {
    ParseOptions { start, tool_calls: true, json: false, stop: Vec::new() }
}

/// The events of a reply, `per_push` ids at a time. Like an engine, stops when the stream says so.
pub fn stream(
    tokenizer: &Tokenizer,
    options: &ParseOptions,
    ids: &[u32],
    per_push: usize,
    end: GenerationEnd,
) -> Vec<Event> {
    let mut stream = ReplyStream::new(options.clone());
    let mut events = Vec::new();
    for chunk in ids.chunks(per_push) {
        events.extend(stream.push(tokenizer, chunk));
        if stream.is_finished() {
            break;
        }
    }
    events.extend(stream.finish(end));
    events
}

/// Holds that the ids' events are the same in every split, all 2^(n-1) of them, and that so is the state behind them.
///
/// Between any two places of the ids, one push of what is between them leaves the state, and gives the events but for
/// where they are cut, that a push for each id does. So does every split, then, by induction over its chunks: the state
/// before a chunk is that of single pushes, and therefore so are the chunk's events and the state behind it. What
/// follows depends on the state alone.
#[track_caller]
pub fn every_split(tokenizer: &Tokenizer, options: &ParseOptions, ids: &[u32]) {
    let mut states = vec![ReplyStream::new(options.clone())];
    let mut single = Vec::new();
    for id in ids {
        let mut state = states.last().expect("there is the first").clone();
        single.push(state.push(tokenizer, &[*id]));
        states.push(state);
    }
    for from in 0..ids.len() {
        let mut expected = Vec::new();
        for to in from + 1..=ids.len() {
            single[to - 1].iter().for_each(|event| join(&mut expected, event.clone()));
            let mut state = states[from].clone();
            let events = joined(state.push(tokenizer, &ids[from..to]));
            assert_eq!(events, expected, "{from}..{to} of {ids:?}");
            assert!(
                state == states[to],
                "{from}..{to} of {ids:?}: {state:?} is not {:?}",
                states[to]
            );
        }
    }
}

/// The ids with every ordinary token as one for each of its bytes.
pub fn bytewise(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<u32> {
    let ordinary = |id: u32| tokenizer.token_bytes(id).ok().filter(|_| !tokenizer.is_added(id));
    let mut of_byte = HashMap::new();
    for id in 0..tokenizer.vocabulary_size() as u32 {
        if let Some(&[byte]) = ordinary(id) {
            of_byte.insert(byte, id);
        }
    }
    let bytes = |id: &u32| match ordinary(*id) {
        Some(token) => token.iter().map(|byte| of_byte[byte]).collect(),
        None => vec![*id],
    };
    ids.iter().flat_map(bytes).collect()
}

/// Neighbouring events of one kind joined.
pub fn joined(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut joined = Vec::new();
    events.into_iter().for_each(|event| join(&mut joined, event));
    joined
}

/// Appends an event, to the last one where it is of the same kind.
fn join(joined: &mut Vec<Event>, event: Event) {
    match (joined.last_mut(), &event) {
        (Some(Event::Reasoning(last)), Event::Reasoning(text))
        | (Some(Event::Content(last)), Event::Content(text)) => last.push_str(text),
        (
            Some(Event::CallArguments { call: last, fragment }),
            Event::CallArguments { call, fragment: text },
        ) if last == call => fragment.push_str(text),
        _ => joined.push(event),
    }
}

/// The reply that events make.
pub fn reply(events: impl IntoIterator<Item = Event>) -> Reply {
    let mut reply = Reply::default();
    reply.extend(events);
    reply
}
