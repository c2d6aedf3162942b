//! How drafts are made and how many are verified, in the spelling of the servers its users know.

use serde_json::Value;
use tandem_engine::exec::DraftSource;
use tandem_hal::{Line, Rule};

/// How likely a draft must be to stand, where drafts are cut and the user has not said.
pub(crate) const LEAST_SURVIVAL: f64 = 0.3;

/// How to draft.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Drafting {
    /// Where drafts come from; `None` for the model's stages where they pay.
    pub(crate) source: Option<Source>,
    /// Drafts a step.
    pub(crate) tokens: Option<i64>,
    /// When drafts of sampled requests stand.
    pub(crate) rule: Option<Rule>,
    /// Whether unlikely ones go unverified.
    pub(crate) adaptive: bool,
}

/// Where drafts come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// From there.
    From(DraftSource),
    /// Nowhere.
    Off,
}

const DSPARK: Source = Source::From(DraftSource::Dspark);
const NGRAM: Source = Source::From(DraftSource::Ngram);

impl Drafting {
    /// `dspark[:TOKENS][,adaptive]`, `ngram[:TOKENS]` or `off`.
    pub(crate) fn short(text: &str) -> Result<Self, String> {
        let (text, adaptive) = match text.split_once(',') {
            None => (text, false),
            Some((text, "adaptive")) => (text, true),
            Some((_, other)) => return Err(format!("{other:?} is not adaptive")),
        };
        let (name, tokens) = match text.split_once(':') {
            None => (text, None),
            Some((name, tokens)) => match tokens.parse::<u32>() {
                Ok(tokens) => (name, Some(i64::from(tokens))),
                Err(_) => return Err(format!("{tokens:?} is no number of tokens")),
            },
        };
        let source = match name {
            "dspark" => DSPARK,
            "ngram" => NGRAM,
            "off" if tokens.is_none() => Source::Off,
            _ => {
                return Err(
                    "is neither dspark[:TOKENS][,adaptive] nor ngram[:TOKENS] nor off".into()
                );
            }
        };
        Self { source: Some(source), tokens, rule: None, adaptive }.checked()
    }

    /// vLLM's JSON.
    pub(crate) fn json(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let mut drafting = Self::default();
        for (key, value) in value.as_object().ok_or("must be an object")? {
            match (key.as_str(), value) {
                ("method", Value::String(method)) if method == "dspark" => {}
                ("method", Value::String(method)) if method == "ngram" => {
                    drafting.source = Some(NGRAM);
                }
                ("num_speculative_tokens", Value::Number(tokens)) if tokens.is_i64() => {
                    drafting.tokens = tokens.as_i64();
                }
                ("rejection_sample_method", Value::String(name)) => {
                    let rules = [Rule::Block, Rule::Standard];
                    let rule = Rule::parse(name).ok().filter(|rule| rules.contains(rule));
                    let wrong = format!("{key} {name:?} is neither block nor standard");
                    drafting.rule = Some(rule.ok_or(wrong)?);
                }
                ("enable_adaptive_verification", Value::Bool(adaptive)) => {
                    drafting.adaptive = *adaptive;
                }
                _ => {
                    let known = "method (dspark or ngram), num_speculative_tokens, \
                                 rejection_sample_method, enable_adaptive_verification";
                    return Err(format!("{key} cannot be {value} here; known: {known}"));
                }
            }
        }
        drafting.checked()
    }

    fn checked(self) -> Result<Self, String> {
        match self.source {
            Some(NGRAM | Source::Off) if self.adaptive => {
                Err("only the model's own stages say how likely their drafts are".into())
            }
            _ => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_read_strictly() {
        let read = |text| Drafting::short(text);
        let dspark = Drafting { source: Some(DSPARK), ..Default::default() };
        assert_eq!(read("dspark"), Ok(dspark));
        assert_eq!(read("dspark,adaptive"), Ok(Drafting { adaptive: true, ..dspark }));
        let three = Drafting { tokens: Some(3), ..dspark };
        assert_eq!(read("dspark:3"), Ok(three));
        assert_eq!(read("dspark:3,adaptive"), Ok(Drafting { adaptive: true, ..three }));
        let ngram = Drafting { source: Some(NGRAM), tokens: Some(7), ..Default::default() };
        assert_eq!(read("ngram:7"), Ok(ngram));
        let off = Drafting { source: Some(Source::Off), ..Default::default() };
        assert_eq!(read("off"), Ok(off));
        for text in [
            "",
            "mtp",
            "dspark:",
            "dspark:-1",
            "dspark:x",
            "dspark,",
            "dspark,fast",
            "ngram,adaptive",
            "off:3",
            "off,adaptive",
            "dspark,adaptive,adaptive",
            "dspark,adaptive:3",
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
    }

    #[test]
    fn json_is_read_strictly() {
        let text = r#"{"method": "dspark", "num_speculative_tokens": 3,
                       "rejection_sample_method": "standard", "enable_adaptive_verification": true}"#;
        let (tokens, rule) = (Some(3), Some(Rule::Standard));
        let expected = Drafting { source: None, tokens, rule, adaptive: true };
        assert_eq!(Drafting::json(text), Ok(expected));
        let ngram = Drafting::json(r#"{"method": "ngram"}"#).map(|drafting| drafting.source);
        assert_eq!(ngram, Ok(Some(NGRAM)));
        for text in [
            "",
            "[]",
            r#"{"method": "eagle"}"#,
            r#"{"num_speculative_tokens": "3"}"#,
            r#"{"rejection_sample_method": "synthetic"}"#,
            r#"{"enable_adaptive_verification": 1}"#,
            r#"{"method": "ngram", "enable_adaptive_verification": true}"#,
            r#"{"tokens": 3}"#,
        ] {
            let problem = Drafting::json(text).unwrap_err();
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
    }
}
