//! The plain row of [`MaskLogits`].

use crate::ops::prelude::*;
use tandem_hal::MaskLogits;

impl Portable for MaskLogits {
    const ROW: Option<PortableRow<Self>> = Some(portable("sample/mask", run, any));
}

fn run(d: &MaskLogits, io: &Arguments<MaskLogits>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [allowed, logits]) = (on.at(Sym::Tokens), [io.allowed, io.logits].map(View));
    let arguments = [allowed, logits, U64(d.vocab), U64(tokens)];
    on.items("sample_mask__portable", tokens * d.vocab, &arguments)
}
