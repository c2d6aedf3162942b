//! How a request wants its tokens chosen.

use crate::error::{Error, Result};

/// Alternatives that may be asked for beside each token.
pub const MAX_LOG_PROBS: u64 = 20;

/// Sampling fields. The default is greedy without limits.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParameters {
    /// Divides the logits; 0, or up to 1e-5, takes the largest (the lowest id on ties).
    pub temperature: f32,
    /// Ids kept, the most likely ones; 0 or -1, or the vocabulary and more, for no limit.
    pub top_k: i64,
    /// Share of probability kept, in (0, 1].
    pub top_p: f32,
    /// Least probability kept, as a share of the largest, in [0, 1].
    pub min_p: f32,
    /// Divides the logits of ids that occurred, in (0, 2]; 1 for none.
    pub repetition_penalty: f32,
    /// Taken from the logits of ids that were generated, in [-2, 2].
    pub presence_penalty: f32,
    /// Taken for each time an id was generated, in [-2, 2].
    pub frequency_penalty: f32,
    /// Added to the logits of ids, in [-100, 100].
    pub logit_bias: Vec<(u32, f32)>,
    /// Log-probabilities wanted: `None` for none, `Some(0)` for the token's own, `Some(n)` for the
    /// `n` best besides. They are of the logits after penalties, bias and masks, before temperature
    /// and filters, and the same with and without drafts.
    pub log_probs: Option<u64>,
    /// Whether they are of the logits as the model gives them instead.
    pub raw_log_probs: bool,
    /// The same seed and the same prompt give the same tokens, whatever else runs. With drafts a
    /// sampled token is drawn by another rule, so on and off agree in law but not in tokens;
    /// greedy tokens are the same. `None` takes a fresh one.
    pub seed: Option<u64>,
}

impl Default for SamplingParameters {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            log_probs: None,
            raw_log_probs: false,
            seed: None,
        }
    }
}

impl SamplingParameters {
    /// Whether every field is within its range and `vocab`; `bias_limit` ids may carry a bias.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the field, its value and its range.
    pub fn check(&self, vocab: u64, bias_limit: u64) -> Result<()> {
        // Written so that NaN fails every comparison.
        within("temperature", self.temperature, self.temperature >= 0.0, "0 or more")?;
        within("top_p", self.top_p, self.top_p > 0.0 && self.top_p <= 1.0, "above 0, up to 1")?;
        within("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "0 to 1")?;
        let repetition = self.repetition_penalty;
        let allowed = repetition > 0.0 && repetition <= 2.0;
        within("repetition_penalty", repetition, allowed, "above 0, up to 2")?;
        let penalties = [
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ];
        for (name, value) in penalties {
            within(name, value, (-2.0..=2.0).contains(&value), "-2 to 2")?;
        }
        if self.top_k < -1 {
            let problem = format!("{} is not -1, 0 or a count", self.top_k);
            return Err(Error::argument("top_k", problem));
        }
        self.check_bias(vocab, bias_limit)?;
        match self.log_probs {
            Some(asked) if asked > MAX_LOG_PROBS => Err(Error::argument(
                "logprobs",
                format!("{asked} alternatives asked for, at most {MAX_LOG_PROBS} are given"),
            )),
            _ => Ok(()),
        }
    }

    fn check_bias(&self, vocab: u64, bias_limit: u64) -> Result<()> {
        if self.logit_bias.len() as u64 > bias_limit {
            let problem = format!("{} ids, at most {bias_limit}", self.logit_bias.len());
            return Err(Error::argument("logit_bias", problem));
        }
        for (id, bias) in &self.logit_bias {
            if u64::from(*id) >= vocab {
                let problem = format!("id {id} is outside the vocabulary of {vocab}");
                return Err(Error::argument("logit_bias", problem));
            }
            within("logit_bias", *bias, (-100.0..=100.0).contains(bias), "-100 to 100")?;
        }
        Ok(())
    }

    /// Whether tokens are the largest logits.
    pub fn is_greedy(&self) -> bool {
        self.temperature <= 1e-5
    }

    /// Whether a penalty or bias changes the logits.
    pub fn changes_logits(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
            || !self.logit_bias.is_empty()
    }

    /// The limit as device lists hold it: 0 for none.
    pub(crate) fn top_k_limit(&self, vocab: u64) -> i32 {
        let limited = self.top_k > 0 && (self.top_k as u64) < vocab;
        if limited { i32::try_from(self.top_k).unwrap_or(0) } else { 0 }
    }
}

fn within(name: &str, value: f32, allowed: bool, range: &str) -> Result<()> {
    if allowed && value.is_finite() {
        return Ok(());
    }
    Err(Error::argument(name, format!("{value} is outside its range, {range}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut SamplingParameters)) -> Option<String> {
        let mut parameters = SamplingParameters::default();
        change(&mut parameters);
        parameters.check(10, 2).err().map(|error| error.to_string())
    }

    #[test]
    fn c077_limits() {
        for top_k in [11, 10, 0, -1, 1, i64::MAX] {
            assert_eq!(refused(|p| p.top_k = top_k), None, "top_k {top_k}");
        }
        assert_eq!(refused(|p| p.top_k = -2).unwrap(), "top_k: -2 is not -1, 0 or a count");
        let limit = |top_k| SamplingParameters { top_k, ..Default::default() }.top_k_limit(10);
        assert_eq!([11, 10, 0, -1, 1, 9, i64::MAX].map(limit), [0, 0, 0, 0, 1, 9, 0]);
        for (min_p, good) in [(0.0, true), (1.0, true), (2.0, false), (-1.0, false)] {
            assert_eq!(refused(|p| p.min_p = min_p).is_none(), good, "min_p {min_p}");
        }
        for (temperature, good) in
            [(0.0, true), (1e-9, true), (-1.0, false), (f32::NAN, false), (f32::INFINITY, false)]
        {
            let refusal = refused(|p| p.temperature = temperature);
            assert_eq!(refusal.is_none(), good, "temperature {temperature}");
        }
        assert!(SamplingParameters { temperature: 1e-9, ..Default::default() }.is_greedy());
    }

    #[test]
    fn other_fields_name_themselves() {
        assert!(refused(|p| p.top_p = 0.0).unwrap().starts_with("top_p: "));
        assert!(refused(|p| p.repetition_penalty = 0.0).unwrap().starts_with("repetition_penalty"));
        assert!(refused(|p| p.presence_penalty = f32::NAN).is_some());
        assert!(refused(|p| p.logit_bias = vec![(10, 1.0)]).unwrap().contains("vocabulary of 10"));
        assert!(refused(|p| p.logit_bias = vec![(1, 1.0); 3]).unwrap().contains("at most 2"));
        assert!(refused(|p| p.log_probs = Some(21)).unwrap().contains("at most 20"));
        assert_eq!(refused(|p| p.log_probs = Some(20)), None);
    }
}
