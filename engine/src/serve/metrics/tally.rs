//! Counts of one reply, as its reader sees it.

use std::sync::Arc;
use std::time::Instant;

use super::Meters;
use crate::text::{Event, FinishReason};

/// Counts a reply's tokens and, once, how it ended: dropped before its end, it was cancelled.
#[derive(Debug)]
pub(in crate::serve) struct Tally {
    meters: Arc<Meters>,
    endpoint: &'static str,
    admitted: Instant,
    /// What its tokens are now.
    kind: TokenKind,
    is_over: bool,
}

/// What a generated token is part of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::serve) enum TokenKind {
    /// Reasoning.
    Reasoning,
    /// The answer.
    Content,
    /// Tool calls.
    Tool,
}

impl Tally {
    /// Of a reply of which the request was let in at `admitted`, and that begins with reasoning or
    /// without.
    pub(in crate::serve) fn new(
        meters: Arc<Meters>,
        endpoint: &'static str,
        admitted: Instant,
        begins: TokenKind,
    ) -> Self {
        Self { meters, endpoint, admitted, kind: begins, is_over: false }
    }

    /// Counts a token and looks at the text that it completed.
    pub(in crate::serve) fn token(&mut self, events: &[Event]) {
        for event in events {
            self.kind = match event {
                Event::Reasoning(_) => TokenKind::Reasoning,
                Event::Content(_) => TokenKind::Content,
                Event::CallStart { .. } | Event::CallArguments { .. } | Event::CallEnd { .. } => {
                    TokenKind::Tool
                }
                Event::Finish(_) => self.kind,
            };
        }
        self.meters.output_tokens(self.kind).inc();
    }

    /// The reply is complete.
    pub(in crate::serve) fn finished(&mut self, reason: FinishReason) {
        self.end(match reason {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => "tool_calls",
        });
    }

    /// The reply broke off.
    pub(in crate::serve) fn failed(&mut self) {
        self.end("error");
    }

    /// The engine did not take the request: it is counted among the refused ones.
    pub(in crate::serve) fn forget(&mut self) {
        self.is_over = true;
    }

    fn end(&mut self, finish: &'static str) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.meters.reply(self.endpoint, finish, self.admitted.elapsed());
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if !self.is_over {
            self.meters.cancelled();
        }
    }
}
