//! Card of [`GatherRows`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Elem, Extents, GatherRows, GatherRowsIo, Result, Sym};

fn case(elem: Elem, width: u64, tokens: u64, outputs: u64) -> (GatherRows, Extents) {
    let extents = Extents::of(&[(Sym::Tokens, tokens), (Sym::Outputs, outputs)]);
    (GatherRows { elem, width }, extents)
}

/// Elements of whole bytes, one of each size first.
const ELEMS: [Elem; 4] = [Elem::Bf16, Elem::F32, Elem::U8, Elem::I32];

impl Card for GatherRows {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let GatherRowsIo { x, at, mut y } = io;
        for o in 0..y.rows() {
            match usize::try_from(at.int(0, o)) {
                Ok(row) if row < x.rows() => y.copy_row(o, &x, row),
                _ => y.clear_row(o),
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (elem, width) = (choices.pick(&ELEMS), choices.between(1, 70));
        case(elem, width, choices.between(0, 17), choices.between(0, 17))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let mut cases: Vec<_> = ELEMS.iter().map(|e| case(*e, 33, 7, 5)).collect();
        let bf16 = Elem::Bf16;
        cases.extend([case(bf16, 1, 1, 1), case(bf16, 8, 5, 0), case(bf16, 8, 0, 3)]);
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        // The upper half of a prefill, and the rows whose logits are wanted.
        vec![case(Elem::Bf16, 4 * 5120, 8192, 129), case(Elem::Bf16, 5120, 8192, 32)]
    }
}
