//! Cards of the family `rows`.

mod embed;
mod gather;
mod place;
#[cfg(test)]
mod tests;
