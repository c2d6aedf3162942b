//! Whether roundings lean to one side.

use super::float::Float;
use tandem_hal::Enc;

/// Counts, over many cases, on which side of the reference the elements that differ from it lie. A
/// row that truncates, or rounds ties away, leans; an honest one differs seldom and to both sides.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Bias {
    /// Elements of smaller magnitude than the reference.
    pub smaller: u64,
    /// Elements of larger magnitude.
    pub larger: u64,
}

impl Bias {
    /// Take in one output; encodings other than plain floats are exact and add nothing.
    pub fn add(&mut self, enc: Enc, got: &[u8], want: &[u8]) {
        let Some(float) = Float::of(enc) else { return };
        for i in 0..want.len() / float.bytes() {
            let (a, b) = (float.value(got, i).abs(), float.value(want, i).abs());
            self.smaller += u64::from(a < b);
            self.larger += u64::from(a > b);
        }
    }
    /// Take in another count.
    pub fn join(&mut self, other: Bias) {
        self.smaller += other.smaller;
        self.larger += other.larger;
    }
    /// Fair coins stray six standard deviations once in a billion runs.
    ///
    /// # Errors
    /// What leans which way.
    pub fn verdict(&self) -> Result<(), String> {
        let (n, lean) = (self.smaller + self.larger, self.smaller.abs_diff(self.larger));
        if lean as f64 <= 6.0 * (n as f64).sqrt() {
            return Ok(());
        }
        let side = if self.smaller > self.larger { "towards" } else { "away from" };
        Err(format!(
            "roundings lean {side} zero: {} of {n} elements",
            self.smaller.max(self.larger)
        ))
    }
}
