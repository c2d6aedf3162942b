//! Cards of the family `attn`.

mod merge;
mod mla_absorbed;
mod mla_expanded;
mod sparse;
