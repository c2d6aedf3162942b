//! Shared code of the test programs.

pub mod conformance;
pub mod faulty;
