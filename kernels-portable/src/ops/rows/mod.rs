//! Plain rows of the `rows` operators.

mod embed;
mod gather;
mod place;
