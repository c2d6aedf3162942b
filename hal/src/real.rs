//! A real number that may stand in a descriptor.

use crate::Line;

/// An `f32` compared, hashed and printed by its bits, so that descriptors are plain data.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Real(u32);

impl Real {
    /// From the value.
    pub const fn new(x: f32) -> Self {
        Real(x.to_bits())
    }
    /// The value.
    pub const fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl std::fmt::Debug for Real {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:e}", self.value())
    }
}

impl Line for Real {
    fn print(&self, to: &mut String) {
        to.push_str(&format!("{self:?}"));
    }
    fn parse(text: &str) -> std::result::Result<Self, String> {
        text.trim().parse().map(Real::new).map_err(|_| format!("'{text}' is not a number"))
    }
}
