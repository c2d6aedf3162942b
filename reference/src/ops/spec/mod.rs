//! Cards of the family `spec`.

mod confidence;
mod markov;
mod verify;
