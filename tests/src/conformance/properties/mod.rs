//! One file per group of properties. Each check returns what is wrong, by property.

pub mod agrees;
pub mod large;
pub mod misuse;
pub mod nan;
pub mod replay;
pub mod rows;
pub mod steps;
pub mod strays;
pub mod streams;
pub mod table;
pub mod views;
