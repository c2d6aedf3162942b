//! Operators without their types: the descriptor as an [`Op`], the card and the plan behind it.

use tandem_hal::{
    Device, Dir, Extents, Facts, IoSet, Op, Operator, Plan, Result, Slot, Stream, View, Want,
    dispatch, for_each_operator,
};
use tandem_reference::{Card, Choices, Context, Slots, Tolerance};

/// One operator and where its cases come from.
#[derive(Clone, Copy)]
pub struct Entry {
    /// `family.name`.
    pub id: &'static str,
    /// Whether every vendor owes a kernel.
    pub core: bool,
    /// The cases that always run.
    pub edges: fn() -> Vec<(Op, Extents)>,
    /// A random case.
    pub draw: fn(&mut dyn Choices) -> (Op, Extents),
}

impl Entry {
    const fn of<D: Card>() -> Entry {
        Entry {
            id: D::ID,
            core: D::CORE,
            edges: || D::edges().into_iter().map(|(d, e)| (d.into(), e)).collect(),
            draw: |choices| {
                let (d, e) = D::draw(choices);
                (d.into(), e)
            },
        }
    }
}

macro_rules! entries {
    ([] $($name:ident)*) => { &[$(Entry::of::<tandem_hal::$name>()),*] };
}

/// Every operator, in the order of the one list.
pub const CATALOGUE: &[Entry] = for_each_operator!([entries]);

/// Operands of a descriptor.
pub fn facts(op: &Op) -> Facts {
    dispatch!(op, d => Facts::of(d))
}

/// Whether the operator has a decomposition.
pub fn is_fused(op: &Op) -> bool {
    dispatch!(op, d => tandem_hal::is_fused(d))
}

/// The primitives that the operator is made of; none of a primitive.
pub fn steps(op: &Op) -> Vec<Op> {
    let steps = dispatch!(op, d => tandem_hal::Steps::of(d).ops());
    let primitives = |op: Op| if is_fused(&op) { self::steps(&op) } else { vec![op] };
    steps.into_iter().flat_map(primitives).collect()
}

/// What counts as equal for an output.
pub fn tolerance(op: &Op, operand: &str) -> Tolerance {
    dispatch!(op, d => d.tolerance(operand))
}

/// Ranks that a launch needs.
pub fn ranks(op: &Op) -> u32 {
    match op {
        Op::AllReduce(d) => d.ranks as u32,
        Op::AllGather(d) => d.ranks as u32,
        _ => 1,
    }
}

/// The card's own arithmetic.
///
/// # Errors
/// What the card returns.
pub fn compute(op: &Op, slots: Slots<'_>, context: &Context<'_>) -> Result<()> {
    fn typed<D: Card>(d: &D, slots: Slots<'_>, context: &Context<'_>) -> Result<()> {
        d.compute(IoSet::from_slots(&mut slots.into_iter()), context)
    }
    dispatch!(op, d => typed(d, slots, context))
}

/// A plan without its type.
pub trait Launch: Send + Sync {
    /// [`Plan::launch`] with operands in order of declaration.
    ///
    /// # Errors
    /// As [`Plan::launch`].
    fn launch(&self, on: &dyn Stream, workspace: &View, views: &[View]) -> Result<()>;
    /// [`Plan::workspace_bytes`].
    fn workspace_bytes(&self) -> u64;
    /// [`Plan::kernel`].
    fn kernel(&self, rows: u64) -> &'static str;
}

impl<D: Operator> Launch for Plan<D> {
    fn launch(&self, on: &dyn Stream, workspace: &View, views: &[View]) -> Result<()> {
        let names = <D::Io<&View, &View> as IoSet<&View, &View>>::NAMES;
        let mut slots = names.iter().zip(views).map(|((_, dir), view)| match dir {
            Dir::In => Slot::In(view),
            Dir::Out | Dir::InOut => Slot::Out(view),
        });
        self.launch(on, workspace, D::Io::from_slots(&mut slots))
    }
    fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes()
    }
    fn kernel(&self, rows: u64) -> &'static str {
        self.kernel(rows)
    }
}

/// Plan on a device.
///
/// # Errors
/// As [`Device::plan`](trait@Device).
pub fn plan(op: &Op, device: &dyn Device, want: &Want) -> Result<Box<dyn Launch>> {
    dispatch!(op, d => device.plan(d.clone(), want).map(|p| Box::new(p) as Box<dyn Launch>))
}

/// Plan the decomposition; `None` for a primitive.
///
/// # Errors
/// As [`Device::plan`](trait@Device).
pub fn plan_steps(op: &Op, device: &dyn Device, want: &Want) -> Result<Option<Box<dyn Launch>>> {
    dispatch!(op, d => device
        .plan_decomposed(d.clone(), want)
        .map(|plan| plan.map(|p| Box::new(p) as Box<dyn Launch>)))
}
