//! The plain row of [`EngramHash`].

use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, EngramHash};

/// Numbers of a launch, as the kernel's source has it.
const NUMBERS: usize = 480;

impl Portable for EngramHash {
    const ROW: Option<PortableRow<Self>> = Some(portable("engram/hash", run, accepts));
}

fn accepts(d: &EngramHash, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if d.multipliers.len() + 2 * d.primes.len() <= NUMBERS {
        Ok(())
    } else {
        Err("more multipliers and primes than the arguments of a launch hold")
    }
}

fn run(d: &EngramHash, io: &Arguments<EngramHash>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [history, map, y]) = (on.at(Sym::Tokens), [io.history, io.map, io.y].map(View));
    let first = d.primes.iter().scan(0, |rows, prime| Some(std::mem::replace(rows, *rows + prime)));
    let mut numbers: Vec<u64> = [&d.multipliers[..], &d.primes].concat();
    numbers.extend(first);
    numbers.resize(NUMBERS, 0);
    let positions = U64(d.multipliers.len() as u64);
    let columns = U64(d.columns());
    let [vocab, pad, picture] = [d.vocab, d.pad, d.picture].map(U64);
    let arguments =
        [history, map, y, Words(&numbers), positions, columns, vocab, pad, picture, U64(tokens)];
    on.items("engram_hash__portable", tokens * d.columns(), &arguments)
}
