//! Shared code of the test programs.
