//! How long steps take.

/// Prompt rows that a step has room for whatever it takes: prompts always get on.
const LEAST_PROMPT_ROWS: u64 = 16;

/// Prompt rows of a step while nothing is known of what they take.
const FIRST_PROMPT_ROWS: u64 = 64;

/// Learns what steps take and says how many prompt rows may join requests that decode, so that
/// these get their tokens in time. It decides when work is done, never what comes of it.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Running mean of steps without prompt rows, microseconds.
    decode_us: Option<f64>,
    /// Running mean of what each prompt row adds.
    prompt_row_us: Option<f64>,
}

impl Pace {
    /// Takes note of a step.
    pub(super) fn note(&mut self, decoding: u64, prompt_rows: u64, step_us: f64) {
        let mix =
            |mean: Option<f64>, new: f64| Some(mean.map_or(new, |old| old + (new - old) / 4.0));
        if prompt_rows == 0 {
            self.decode_us = mix(self.decode_us, step_us);
        } else {
            let decode_us = if decoding > 0 { self.decode_us.unwrap_or(0.0) } else { 0.0 };
            let row_us = (step_us - decode_us).max(0.0) / prompt_rows as f64;
            self.prompt_row_us = mix(self.prompt_row_us, row_us);
        }
    }

    /// Prompt rows that a step of at most `bound_us` has room for beside requests that decode.
    pub(super) fn prompt_rows(&self, bound_us: u64) -> u64 {
        let left_us = bound_us as f64 - self.decode_us.unwrap_or(0.0);
        match self.prompt_row_us {
            None => FIRST_PROMPT_ROWS,
            // A row that takes no time bounds nothing; the cast saturates.
            Some(row_us) => ((left_us / row_us) as u64).max(LEAST_PROMPT_ROWS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_what_steps_took() {
        let mut pace = Pace::default();
        assert_eq!(pace.prompt_rows(10_000), FIRST_PROMPT_ROWS);
        pace.note(3, 0, 2_000.0);
        pace.note(3, 64, 2_000.0 + 64.0 * 50.0);
        assert_eq!(pace.prompt_rows(10_000), 160);
        // Later steps take twice as long: the mean moves there.
        for _ in 0..40 {
            pace.note(3, 160, 2_000.0 + 160.0 * 100.0);
        }
        assert_eq!(pace.prompt_rows(10_000), 80);
        // Without room there is still some, and rows that take nothing bound nothing.
        assert_eq!(pace.prompt_rows(1_000), LEAST_PROMPT_ROWS);
        let mut free = Pace::default();
        free.note(0, 8, 0.0);
        assert_eq!(free.prompt_rows(1), u64::MAX);
    }
}
