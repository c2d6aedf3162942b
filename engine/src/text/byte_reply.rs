//! A reply from arbitrary bytes: what a fuzzer feeds.

use super::control::ControlToken;
use super::detokenise::Detokeniser;
use super::parse::{GenerationEnd, ParseOptions, Piece, ReplyParser};
use super::prompt::ReplyStart;
use super::reply::Reply;

/// Bytes that no UTF-8 text has stand for tokens of the added vocabulary.
const fn token_of(byte: u8) -> Option<ControlToken> {
    match byte {
        0xF8 => Some(ControlToken::ThinkClose),
        0xF9 | 0xFA => Some(ControlToken::Dsml),
        0xFB => Some(ControlToken::ThinkOpen),
        0xFC => Some(ControlToken::User),
        _ => None,
    }
}

/// Reads `data` as a reply: the first byte chooses the options, the bytes 0xF8 to 0xFC stand for
/// control tokens, 0xFD cuts the text into pieces there, all others are the bytes of ordinary
/// tokens. Any input has a reply.
pub fn reply_from_bytes(data: &[u8]) -> Reply {
    let (&choice, data) = data.split_first().unwrap_or((&0, &[]));
    let start = match choice & 7 {
        0 | 1 => ReplyStart::Reasoning,
        2 => ReplyStart::ReasoningContinuation,
        3 | 4 => ReplyStart::Content,
        5 => ReplyStart::ContentContinuation,
        _ => ReplyStart::ToolCalls,
    };
    let stop = if choice & 8 == 0 { Vec::new() } else { vec!["ab".into(), "\n<".into()] };
    let mut parser = ReplyParser::new(ParseOptions {
        start,
        tool_calls: choice & 16 == 0,
        json: choice & 32 != 0,
        stop,
    });
    let mut reply = Reply::default();
    let mut detokeniser = Detokeniser::default();
    let mut text = String::new();
    for &byte in data {
        if let Some(token) = token_of(byte) {
            detokeniser.close(&mut text);
            let marker = Piece::Token { control: Some(token), spelling: token.spelling() };
            reply.extend(parser.push([Piece::Text(&text), marker]));
            text.clear();
        } else if byte == 0xFD {
            reply.extend(parser.push([Piece::Text(&text)]));
            text.clear();
        } else {
            detokeniser.push(&[byte], &mut text);
        }
    }
    reply.extend(parser.push([Piece::Text(&text)]));
    let end = if choice & 64 == 0 { GenerationEnd::StopToken } else { GenerationEnd::Limit };
    reply.extend(parser.finish(end));
    reply
}
