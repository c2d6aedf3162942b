//! Cards of the family `engram`.

mod gate;
mod hash;
#[cfg(test)]
mod hash_tests;
mod lookup;
#[cfg(test)]
mod tests;
