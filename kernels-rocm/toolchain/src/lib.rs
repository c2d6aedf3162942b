//! How kernel sources become AMD code objects, and what is known of those.
//!
//! The objects are committed, as `kernels-rocm/objects/TARGET/FAMILY.OP.hsaco`, beside a [`Manifest`] that
//! says what they were made from. A build takes them as they are; it needs a compiler only for sources that
//! changed since ([`Source::digest`]). `cargo xtask objects rocm` makes them anew.

mod compiler;
mod description;
mod digest;
mod kernel;
mod manifest;
mod source;

pub use compiler::Compiler;
pub use description::describe;
pub use digest::digest;
pub use kernel::Kernel;
pub use manifest::{Manifest, Record};
pub use source::Source;

/// Every target: MI300X and MI325X, and MI350X and MI355X.
pub const TARGETS: [&str; 2] = ["gfx942", "gfx950"];

/// Where the objects and the manifest lie in the workspace.
pub const OBJECTS: &str = "kernels-rocm/objects";
