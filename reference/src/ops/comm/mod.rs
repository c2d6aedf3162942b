//! Cards of the family `comm`.

mod all_gather;
mod all_reduce;
mod exchange;
#[cfg(test)]
mod tests;
