//! Card of [`Compress`].

use crate::{
    Card, Choices, Compute, Context, Host, Tensor, Tolerance, blocked_row, scalar_row, threads,
};
use tandem_hal::{Cache, Compress, CompressIo, Extents, Form, Record, Result, Row, Sym};

/// The group of row `t`, one `[value | gate]` a member; `None` unless all are there.
fn group(open: &Tensor<'_>, members: &Tensor<'_>, t: usize) -> Option<Vec<Vec<f32>>> {
    (0..members.cols()).map(|i| open.entry(members.int(t, i))).collect()
}

/// A group's latent with its magnitudes; zeros without a group.
fn pool(group: Option<Vec<Vec<f32>>>, width: usize) -> (Vec<f64>, Vec<f64>) {
    let Some(group) = group else { return (vec![0.0; width], vec![0.0; width]) };
    let mut largest = vec![f64::NEG_INFINITY; width];
    for member in &group {
        largest.iter_mut().zip(&member[width..]).for_each(|(l, g)| *l = l.max(f64::from(*g)));
    }
    let (mut sums, mut terms) = (vec![0.0; width], vec![]);
    for member in &group {
        let below = member[width..].iter().zip(&largest).map(|(g, l)| f64::from(*g) - l);
        let row: Vec<f64> = below.map(libm::exp).collect();
        sums.iter_mut().zip(&row).for_each(|(sum, e)| *sum += e);
        terms.push(row);
    }
    let (mut y, mut magnitudes) = (vec![0.0; width], vec![0.0; width]);
    for (member, row) in group.iter().zip(&terms) {
        for c in 0..width {
            // fp32 steps, but for the exponentials and their sum.
            let term = f64::from((row[c] / sums[c]) as f32 * member[c]);
            y[c] = f64::from((y[c] + term) as f32);
            // The error of an exponential grows with its argument, until nothing is left of it.
            let below = (largest[c] - f64::from(member[width + c])).min(1000.0);
            magnitudes[c] += term.abs() * (1.0 + below);
        }
    }
    (y, magnitudes)
}

/// With the cost of a gate in operations; 0 keeps to one thread.
fn run(io: Host<'_, Compress>, operations: usize) {
    let CompressIo { open, members, mut y } = io;
    if y.is_empty() {
        return;
    }
    let width = y.cols();
    let operations = operations * width * members.cols();
    let rows = threads::collect(y.rows(), operations, |t| pool(group(&open, &members, t), width));
    for (t, (values, magnitudes)) in rows.iter().enumerate() {
        y.set_row(t, values);
        y.set_magnitude(t, magnitudes);
    }
}

fn case(width: u64, ratio: u64, tokens: u64) -> (Compress, Extents) {
    let record = Record::new(Form::F32, 2 * width as u32);
    let open = Cache { record, page_entries: 8, pages: Sym::OpenPages };
    (Compress { open, ratio }, Extents::of(&[(Sym::Tokens, tokens), (Sym::OpenPages, 2)]))
}

impl Card for Compress {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|_, io, _| {
                    run(io, 60);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        // An exponential of a few ulps and a division per member, and a sum over the members.
        Tolerance::Bound { gamma: (self.ratio as f64 + 8.0) * f64::from(f32::EPSILON) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (width, ratio) = (choices.pick(&[1, 7, 32, 64, 130]), choices.pick(&[2, 1, 3, 4]));
        case(width, ratio, choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(512, 2, 0), case(512, 2, 1), case(512, 2, 17), case(8, 8, 3)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shape = |tokens| {
            let (d, extents) = case(512, 2, tokens);
            (d, extents.with(Sym::OpenPages, tokens.div_ceil(8) + 1))
        };
        [1, 32, 8192].map(shape).to_vec()
    }
}
