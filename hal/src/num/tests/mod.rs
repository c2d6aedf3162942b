//! The codecs against naive definitions of the formats, exhaustively where the domain allows, and
//! hand-worked cases.

mod bf16;
mod block;
mod cases;
mod codes;
mod nearest;
mod ue8m0;
