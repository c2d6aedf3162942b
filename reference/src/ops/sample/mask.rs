//! Card of [`MaskLogits`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Error, Extents, MaskLogits, Operator, Result};

impl Card for MaskLogits {
    fn compute(&self, _io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let reason = "the reference has no arithmetic for it yet".into();
        Err(Error::Unsupported { op: Self::ID.into(), reason })
    }
    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }
    fn draw(_choices: &mut dyn Choices) -> (Self, Extents) {
        unreachable!("no cases before the arithmetic")
    }
    fn edges() -> Vec<(Self, Extents)> {
        vec![]
    }
}
