//! AMD backend.
