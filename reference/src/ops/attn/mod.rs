//! Cards of the family `attn`.

mod merge;
mod mla_absorbed;
mod mla_expanded;
mod softmax;
mod sparse;
#[cfg(test)]
mod tests;
