//! Plain rows of the `spec` operators.

mod confidence;
mod markov;
mod verify;
