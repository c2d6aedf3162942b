//! Sampling fields that a request leaves open, and those that the hosted model overrides.

use super::effort::Effort;

/// Most tokens that a request may ask for.
pub const MAX_TOKENS_LIMIT: u64 = 393_216;
/// Least top-p while thinking.
const THINKING_TOP_P: f64 = 0.95;

/// What the request says; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SamplingRequest {
    /// Limit of the reply, reasoning included.
    pub max_tokens: Option<u64>,
    /// Temperature.
    pub temperature: Option<f64>,
    /// Nucleus mass.
    pub top_p: Option<f64>,
}

/// What to sample with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingFields {
    /// Limit of the reply, reasoning included.
    pub max_tokens: u64,
    /// Temperature.
    pub temperature: f64,
    /// Nucleus mass.
    pub top_p: f64,
}

impl SamplingRequest {
    /// Resolves the fields as the hosted model does: while thinking the temperature is 1 and top-p
    /// at least 0.95, in chat mode top-p is 1. `context_left` is the context less the prompt, in
    /// tokens; an open limit is cut to it, but never below one token.
    ///
    /// The limits that a request asks for are not checked here: exceeding them is an error that
    /// the protocol words.
    pub fn resolve(self, thinking: bool, effort: Effort, context_left: u64) -> SamplingFields {
        let open_limit: u64 = match (thinking, effort) {
            (false, _) => 8_192,
            (true, Effort::MAX) => 131_072,
            (true, _) => 65_536,
        };
        let top_p = if thinking { self.top_p.unwrap_or(1.0).max(THINKING_TOP_P) } else { 1.0 };
        SamplingFields {
            max_tokens: self.max_tokens.unwrap_or(open_limit.min(context_left).max(1)),
            temperature: if thinking { 1.0 } else { self.temperature.unwrap_or(1.0) },
            top_p,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, SamplingRequest};

    #[test]
    fn as_the_hosted_model() {
        let open = SamplingRequest::default();
        let set = |temperature, top_p| SamplingRequest {
            max_tokens: None,
            temperature: Some(temperature),
            top_p: Some(top_p),
        };
        let high = Effort::HIGH;
        for (request, thinking, effort, expected) in [
            (open, true, high, (65_536, 1.0, 1.0)),
            (open, true, Effort::MAX, (131_072, 1.0, 1.0)),
            (open, false, Effort::MAX, (8_192, 1.0, 1.0)),
            (set(0.2, 0.5), true, high, (65_536, 1.0, 0.95)),
            (set(0.2, 0.99), true, high, (65_536, 1.0, 0.99)),
            (set(0.2, 0.5), false, high, (8_192, 0.2, 1.0)),
        ] {
            let fields = request.resolve(thinking, effort, 1 << 20);
            assert_eq!((fields.max_tokens, fields.temperature, fields.top_p), expected);
        }
    }

    #[test]
    fn open_limit_fits_the_context() {
        let open = SamplingRequest::default();
        assert_eq!(open.resolve(true, Effort::HIGH, 100).max_tokens, 100);
        assert_eq!(open.resolve(true, Effort::HIGH, 0).max_tokens, 1);
        let asked = SamplingRequest { max_tokens: Some(7), ..open };
        assert_eq!(asked.resolve(true, Effort::HIGH, 1 << 20).max_tokens, 7);
    }
}
