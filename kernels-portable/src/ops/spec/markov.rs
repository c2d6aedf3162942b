//! The plain row of [`Markov`].

use crate::ops::prelude::*;
use tandem_hal::Markov;

impl Portable for Markov {
    const ROW: Option<PortableRow<Self>> = Some(portable("spec/markov", run, any));
}

fn run(d: &Markov, io: &Arguments<Markov>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [previous, embed, head, logits] = [io.previous, io.embed, io.head, io.logits].map(View);
    let arguments = [previous, embed, head, logits, U64(d.vocab), U64(d.rank), U64(tokens)];
    on.items("spec_markov__portable", tokens * d.vocab, &arguments)
}
