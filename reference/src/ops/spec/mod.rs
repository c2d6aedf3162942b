//! Cards of the family `spec`.

mod confidence;
mod markov;
mod verify;

#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verify_tests;
