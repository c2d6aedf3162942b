//! Many requests in a few figures.

use serde_json::{Value, json};

use super::timeline::Timeline;

/// What a user is promised, in seconds; a request within all of it counts as goodput.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promise {
    pub(super) ttft: Option<f64>,
    pub(super) tpot: Option<f64>,
    pub(super) e2e: Option<f64>,
}

impl Promise {
    fn holds(&self, timeline: &Timeline) -> bool {
        let within = |time: Option<f64>, most: Option<f64>| match (time, most) {
            (Some(time), Some(most)) => time <= most,
            _ => true,
        };
        within(timeline.ttft(), self.ttft)
            && within(timeline.tpot(), self.tpot)
            && within(timeline.e2e(), self.e2e)
    }
}

/// How a time is distributed, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Distribution {
    sorted: Vec<f64>,
}

impl Distribution {
    fn new(times: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = times.collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }

    pub(super) fn mean(&self) -> f64 {
        self.sorted.iter().sum::<f64>() / self.sorted.len().max(1) as f64
    }

    /// The time below which `share` of all lie, between two neighbours in proportion; zero of none.
    pub(super) fn at(&self, share: f64) -> f64 {
        let place = share * self.sorted.len().saturating_sub(1) as f64;
        let at = |place: f64| self.sorted.get(place as usize).copied().unwrap_or_default();
        let (below, above) = (at(place.floor()), at(place.ceil()));
        below + (above - below) * place.fract()
    }

    /// Milliseconds.
    fn json(&self) -> Value {
        let ms = |seconds: f64| seconds * 1e3;
        json!({
            "count": self.sorted.len(), "mean_ms": ms(self.mean()), "median_ms": ms(self.at(0.5)),
            "p90_ms": ms(self.at(0.9)), "p95_ms": ms(self.at(0.95)), "p99_ms": ms(self.at(0.99)),
            "max_ms": ms(self.at(1.0)),
        })
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// Requests with a whole answer, and without.
    pub(super) completed: usize,
    pub(super) failed: usize,
    /// From the first request to the last answer.
    pub(super) seconds: f64,
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) output_tokens: u64,
    /// Whole answers within the promise.
    pub(super) good: usize,
    pub(super) ttft: Distribution,
    pub(super) tpot: Distribution,
    pub(super) itl: Distribution,
    pub(super) e2e: Distribution,
    /// How often each failure was.
    pub(super) failures: Vec<(String, usize)>,
}

impl Summary {
    /// Failed requests count as such and in no time.
    pub(super) fn new(timelines: &[Timeline], promise: &Promise) -> Self {
        let whole: Vec<&Timeline> = timelines.iter().filter(|t| t.failure.is_none()).collect();
        let mut failures: Vec<(String, usize)> = vec![];
        for failure in timelines.iter().filter_map(|t| t.failure.as_ref()) {
            match failures.iter_mut().find(|(known, _)| known == failure) {
                Some((_, count)) => *count += 1,
                None => failures.push((failure.clone(), 1)),
            }
        }
        let first = timelines.iter().map(|t| t.sent).fold(f64::INFINITY, f64::min);
        let last = timelines.iter().map(|t| t.end).fold(0.0, f64::max);
        let sum = |tokens: fn(&Timeline) -> u64| whole.iter().map(|t| tokens(t)).sum();
        let times = |time: fn(&Timeline) -> Option<f64>| {
            Distribution::new(whole.iter().filter_map(|t| time(t)))
        };
        Self {
            completed: whole.len(),
            failed: timelines.len() - whole.len(),
            seconds: (last - first).max(0.0),
            prompt_tokens: sum(|t| t.prompt_tokens),
            cached_tokens: sum(|t| t.cached_tokens),
            output_tokens: sum(|t| t.output_tokens),
            good: whole.iter().filter(|t| promise.holds(t)).count(),
            ttft: times(Timeline::ttft),
            tpot: times(Timeline::tpot),
            itl: Distribution::new(whole.iter().flat_map(|t| t.gaps())),
            e2e: times(Timeline::e2e),
            failures,
        }
    }

    fn per_second(&self, count: f64) -> f64 {
        if self.seconds > 0.0 { count / self.seconds } else { 0.0 }
    }

    pub(super) fn output_rate(&self) -> f64 {
        self.per_second(self.output_tokens as f64)
    }

    pub(super) fn request_rate(&self) -> f64 {
        self.per_second(self.completed as f64)
    }

    pub(super) fn goodput(&self) -> f64 {
        self.per_second(self.good as f64)
    }

    /// All figures, times in milliseconds.
    pub(super) fn json(&self) -> Value {
        let failures: serde_json::Map<String, Value> =
            self.failures.iter().map(|(why, count)| (why.clone(), json!(count))).collect();
        json!({
            "completed": self.completed, "failed": self.failed, "failures": failures,
            "duration_s": self.seconds,
            "total_input_tokens": self.prompt_tokens, "cached_input_tokens": self.cached_tokens,
            "total_output_tokens": self.output_tokens,
            "request_throughput": self.request_rate(), "request_goodput": self.goodput(),
            "output_throughput": self.output_rate(),
            "total_token_throughput":
                self.per_second((self.prompt_tokens + self.output_tokens) as f64),
            "ttft": self.ttft.json(), "tpot": self.tpot.json(), "itl": self.itl.json(),
            "e2el": self.e2e.json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Request number `i` of ten: sent every tenth of a second, its first piece after `i` hundredths and four more, each
    /// of two tokens but the first, a fiftieth apart.
    fn timeline(i: u32) -> Timeline {
        let sent = f64::from(i) / 10.0;
        let first = sent + f64::from(i) / 100.0;
        let pieces: Vec<f64> = (0..5).map(|piece| first + f64::from(piece) / 50.0).collect();
        let end = pieces[4];
        let (prompt_tokens, cached_tokens, output_tokens) = (100, 64, 9);
        Timeline { sent, pieces, end, prompt_tokens, cached_tokens, output_tokens, failure: None }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn figures_are_those_that_can_be_worked_out_by_hand() {
        let timelines: Vec<_> = (0..10).map(timeline).collect();
        let promise = Promise { ttft: Some(0.0405), ..Promise::default() };
        let summary = Summary::new(&timelines, &promise);
        assert_eq!((summary.completed, summary.failed, summary.good), (10, 0, 5));
        assert!(close(summary.seconds, 0.9 + 0.09 + 0.08));
        assert!(close(summary.ttft.mean(), 0.045));
        assert!(close(summary.ttft.at(0.5), 0.045) && close(summary.ttft.at(0.9), 0.081));
        assert!(close(summary.tpot.mean(), 0.01) && close(summary.itl.mean(), 0.02));
        assert!(close(summary.e2e.at(1.0), 0.17));
        assert!(close(summary.output_rate(), 90.0 / 1.07));
        assert!(close(summary.goodput(), 5.0 / 1.07));
        let json = summary.json();
        assert_eq!(json["cached_input_tokens"], 640);
        assert_eq!(json["itl"]["count"], 40);
    }

    #[test]
    fn failures_are_counted_by_kind_and_have_no_times() {
        let failed = |why: &str| Timeline { failure: Some(why.into()), ..timeline(1) };
        let timelines = [timeline(0), failed("429"), failed("reset"), failed("429")];
        let summary = Summary::new(&timelines, &Promise::default());
        assert_eq!((summary.completed, summary.failed, summary.output_tokens), (1, 3, 9));
        assert_eq!(summary.failures, [("429".to_owned(), 2), ("reset".to_owned(), 1)]);
        assert_eq!(summary.ttft.sorted.len(), 1);
        let none = Summary::new(&[], &Promise::default());
        assert_eq!((none.seconds, none.output_rate(), none.ttft.at(0.99)), (0.0, 0.0, 0.0));
    }
}
