//! Calls that did not succeed.

use std::fmt;

use tandem_hal::Error;

/// Result of every fallible call of the driver layer.
pub type Result<T> = std::result::Result<T, Failure>;

/// A driver call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The call.
    pub call: &'static str,
    /// The driver's code.
    pub code: u32,
    /// The driver's words, or ours.
    pub meaning: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {}: {}", self.call, self.code, self.meaning)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(Failure { call, code, meaning }: Failure) -> Error {
        Error::Driver { call, code: code as i32, meaning }
    }
}
