//! The one proptest strategy: a list of numbers that cards turn into cases.

use proptest::{collection::vec, prelude::*};
use tandem_reference::Choices;

/// Choices read off a list; past its end all are 0, the simplest.
pub struct Draws<'a> {
    rest: &'a [u64],
}

impl<'a> Draws<'a> {
    /// From the numbers of a strategy.
    pub fn new(numbers: &'a [u64]) -> Draws<'a> {
        Draws { rest: numbers }
    }
}

impl Choices for Draws<'_> {
    fn below(&mut self, n: u64) -> u64 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        // Scaled, not reduced: a smaller number is a smaller choice, so cases shrink.
        ((u128::from(*first) * u128::from(n)) >> 64) as u64
    }
}

/// Numbers for one case; smaller ones are simpler cases.
pub fn numbers() -> impl Strategy<Value = Vec<u64>> {
    vec(any::<u64>(), 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_numbers_are_smaller_choices_and_the_end_is_zero() {
        let list = [u64::MAX, 1 << 63, 0];
        let mut draws = Draws::new(&list);
        assert_eq!(
            [draws.below(10), draws.below(10), draws.below(10), draws.below(10)],
            [9, 5, 0, 0]
        );
        assert_eq!(draws.below(0), 0);
    }
}
