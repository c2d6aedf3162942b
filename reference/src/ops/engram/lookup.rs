//! Card of [`EngramLookup`].

use crate::{
    Card, Choices, Compute, Context, Host, Tensor, Tolerance, blocked_row, scalar_row, threads,
};
use tandem_hal::{EngramLookup, EngramLookupIo, Extents, Result, Row, Sym};

/// One token's rows side by side; zeros for a row that is not there.
fn gather(table: &Tensor<'_>, rows: &[i32], head_dim: usize) -> Vec<f32> {
    let mut values = vec![0.0; rows.len() * head_dim];
    for (row, to) in rows.iter().zip(values.chunks_exact_mut(head_dim)) {
        if let Some(r) = usize::try_from(*row).ok().filter(|r| *r < table.rows()) {
            to.copy_from_slice(&table.row(r));
        }
    }
    values
}

/// With the cost of an element in operations; 0 keeps to one thread.
fn run(d: &EngramLookup, io: Host<'_, EngramLookup>, operations: usize) {
    let EngramLookupIo { row, table, mut y } = io;
    let operations = operations * y.cols();
    let rows = threads::collect(row.rows(), operations, |t| {
        gather(&table, &row.ints(t), d.head_dim as usize)
    });
    for (t, values) in rows.iter().enumerate() {
        y.set_row_f32(t, values);
    }
}

fn case(rows: u64, columns: u64, head_dim: u64, tokens: u64) -> (EngramLookup, Extents) {
    (EngramLookup { rows, columns, head_dim }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for EngramLookup {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(self, io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    run(d, io, 2);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let head_dim = 32 * choices.between(1, 4);
        case(choices.between(1, 40), choices.between(1, 6), head_dim, choices.between(0, 5))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(8, 24, 256, 0), case(1, 1, 32, 1), case(50, 24, 256, 13)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 32, 8192].map(|tokens| case(1 << 20, 24, 256, tokens)).to_vec()
    }
}
