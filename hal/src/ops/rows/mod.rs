//! Moving whole rows.

pub mod embed;
pub mod gather;
pub mod place;

pub use embed::{Embed, EmbedIo};
pub use gather::{GatherRows, GatherRowsIo};
pub use place::{PlaceRows, PlaceRowsIo};
