//! Faults by name, planted around the reference: what the conformance suite must catch.
//!
//! A fault is planted in one operator and names the property that should fail. It may break others
//! as well; the suite must find at least the one that names it.

pub mod conduct;
pub mod fault;
pub mod launch;
pub mod provider;
pub mod trial;
pub mod values;
pub mod wrapper;
