//! An operator's other half.

use crate::{Group, Tensor, TensorMut};
use tandem_hal::{Accumulator, Extents, Needs, Numerics, Operator, Rank, Result, Row};

/// An operator's operands as host tensors.
pub type Host<'a, D> = <D as Operator>::Io<Tensor<'a>, TensorMut<'a>>;

/// A row of the reference: arithmetic on host tensors.
pub type Compute<D> = for<'a> fn(&D, Host<'a, D>, &Context<'_>) -> Result<()>;

/// What arithmetic needs besides its operands.
pub struct Context<'a> {
    /// The ranks this device belongs to.
    pub group: &'a Group,
}

/// What counts as equal to the reference. NaN and infinity masks must always agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// The same bytes.
    Exact,
    /// `|got - exact| <= gamma Σ|terms| + ½ ulp(out)`, against the value before its rounding, the
    /// terms' magnitude as the card reports it with the value; `gamma` follows from the length of the sum and the accumulator.
    Bound {
        /// Factor of the magnitude.
        gamma: f64,
    },
    /// So many units in the last place of the output's format, and at most this share of elements
    /// more than one unit off.
    Ulp {
        /// Largest distance.
        ulps: u32,
        /// Largest share of elements more than one unit off.
        share: f64,
    },
}

impl Tolerance {
    /// The tolerance of a row that adds products in `accumulator`.
    #[must_use]
    pub fn of(self, accumulator: Accumulator) -> Tolerance {
        match self {
            Tolerance::Bound { gamma } => Tolerance::Bound { gamma: gamma + accumulator.gamma() },
            other => other,
        }
    }
}

/// A source of choices for random cases. The test crate's one proptest strategy implements it, so
/// cases shrink: smaller draws mean simpler cases.
pub trait Choices {
    /// A number below `n`; 0 when `n` is 0.
    fn below(&mut self, n: u64) -> u64;
}

impl dyn Choices + '_ {
    /// One of the choices; earlier ones are simpler.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }
    /// A number from `low` to `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
    /// Heads or tails; false is simpler.
    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }
}

/// The reference's side of an operator.
pub trait Card: Operator {
    /// The arithmetic, as scalar loops: this defines the result. Outputs that carry a magnitude
    /// buffer (see [`TensorMut`]) get the magnitudes of their bound as well.
    ///
    /// # Errors
    /// [`tandem_hal::Error::Peer`] from collectives; nothing else can fail on checked operands.
    fn compute(&self, io: Host<'_, Self>, context: &Context<'_>) -> Result<()>;

    /// The rows of the reference device: the scalar one, and faster ones of the same bits.
    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const { &[scalar_row::<Self>()] }
    }

    /// What counts as equal for output `operand`.
    fn tolerance(&self, operand: &str) -> Tolerance;

    /// A random case of moderate size.
    fn draw(choices: &mut dyn Choices) -> (Self, Extents);

    /// Cases that must always run: empty, single, block edges, what once broke.
    fn edges() -> Vec<(Self, Extents)>;

    /// The production shapes that benches time.
    fn bench_shapes() -> Vec<(Self, Extents)> {
        vec![]
    }
}

/// The row that every operator has: its card's own arithmetic.
pub const fn scalar_row<D: Card>() -> Row<D, Compute<D>> {
    Row {
        name: "scalar",
        arch: &["host"],
        rank: Rank::Portable,
        numerics: Numerics::RowInvariant,
        // The reference defines the bits, of primitives and of decompositions alike.
        bits: tandem_hal::STEPS,
        accumulator: Accumulator::F32,
        tokens: 0..=u64::MAX,
        accepts: |_, _| Ok(()),
        suits: |_| true,
        needs: |_, _| Needs { workspace_bytes: 0 },
        launch: D::compute,
    }
}

/// A faster row of the same bits as [`scalar_row`].
pub const fn blocked_row<D: Card>(launch: Compute<D>) -> Row<D, Compute<D>> {
    Row { name: "blocked", rank: Rank::Tuned, launch, ..scalar_row::<D>() }
}
