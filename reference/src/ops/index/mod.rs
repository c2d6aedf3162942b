//! Cards of the family `index`.

mod candidates;
mod scores;
mod select;
mod top_k;
