//! Releases of the driver.

use std::fmt;

/// A release, by its two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
}

impl Version {
    /// The first that knows gfx942.
    pub const OLDEST: Version = Version { major: 6, minor: 0 };

    /// From the driver's number, which has seven digits behind the major one, the first two of them the minor.
    pub(super) fn of(number: i32) -> Version {
        let number = number.max(0) as u32;
        Version { major: number / 10_000_000, minor: number / 100_000 % 100 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_releases() {
        for (number, text) in
            [(50_221_153, "5.2"), (60_342_134, "6.3"), (70_051_831, "7.0"), (-1, "0.0")]
        {
            assert_eq!(Version::of(number).to_string(), text);
        }
        assert!(
            Version::of(50_731_921) < Version::OLDEST && Version::of(60_032_830) >= Version::OLDEST
        );
    }
}
