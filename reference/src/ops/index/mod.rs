//! Cards of the family `index`.

mod best;
mod candidates;
mod queries;
mod scores;
mod select;
#[cfg(test)]
mod tests;
mod top_k;
