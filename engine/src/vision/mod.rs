//! Pictures on the host: from file bytes to the patch matrix and the token span.
//!
//! A picture passes through [`decode`] (file to RGB), [`TargetSize`] (how large the model sees
//! it), [`fit`] (bicubic scaling and grey padding), [`PatchMatrix`] (normalised bf16 patches) and
//! [`Span`] (its positions in the prompt). [`PictureInput`] runs all of them. No model arithmetic
//! happens here: the tower and the aligner are the model's.

mod bicubic;
mod decode;
mod error;
mod input;
mod panic_guard;
mod patches;
mod picture;
mod resize;
mod size;
mod span;

pub use decode::{DecodeLimits, decode};
pub use error::Error;
pub use input::PictureInput;
pub use patches::PatchMatrix;
pub use picture::Picture;
pub use resize::{PADDING_LEVEL, fit, resize};
pub use size::{PictureLimits, TargetSize};
pub use span::{Span, SpanKind};
