//! Decompositions of fused operators.

use crate::{
    Checked, Device, Dim, Dir, Domain, Enc, Extents, IoSet, Kernel, MAX_OPERANDS, Needs, Op,
    Operand, Operator, PORTABLE, Result, Slot, Stream, View, Want,
    plan::{Erased, plan_erased},
};

/// The bits of a decomposition whose steps all have the bits of plain kernels. Of other steps it is
/// followed by each one's operator and bits, as [`steps_bits`] says. A fused row names the bits that
/// it equals and is compared byte by byte with steps of those bits; under
/// [`crate::Numerics::RowInvariant`] it is taken only where the device chooses them for its steps,
/// so that falling back to the steps never changes a result.
pub const STEPS: &str = "steps";

/// The bits of a decomposition into steps of these operators and bits: `steps OP=BITS …`, without
/// those of plain kernels.
pub fn steps_bits<'a>(steps: impl Iterator<Item = (&'static str, &'a str)>) -> String {
    let mut line = String::from(STEPS);
    for (op, bits) in steps {
        match bits.strip_prefix(STEPS) {
            // A step that is fused itself.
            Some(inner) => line.push_str(inner),
            None if bits == PORTABLE => {}
            None => line.extend([" ", op, "=", bits]),
        }
    }
    line
}

/// An operand of a decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ref {
    /// One of the fused operator's own, by place.
    Operand(usize),
    /// A temporary, by number.
    Temp(usize),
    /// The operand that is not there, of this encoding.
    Absent(Enc),
}

type Planner = Box<dyn Fn(&dyn Device, &Want) -> Result<Erased>>;

/// Records a decomposition; reads like engine code.
#[derive(Default)]
pub struct Steps {
    temps: Vec<Operand>,
    steps: Vec<(Vec<Ref>, Op, Planner)>,
}

impl Steps {
    /// The decomposition of an operator over its operands by place; nothing of a primitive.
    pub fn of<D: Operator>(d: &D) -> Steps {
        let names = <D::Io<Ref, Ref> as IoSet<Ref, Ref>>::NAMES;
        let mut own = names.iter().enumerate().map(|(i, (_, dir))| match dir {
            Dir::In => Slot::In(Ref::Operand(i)),
            Dir::Out | Dir::InOut => Slot::Out(Ref::Operand(i)),
        });
        let mut steps = Steps::default();
        d.decompose(D::Io::<Ref, Ref>::from_slots(&mut own), &mut steps);
        steps
    }
    /// The operators of the steps, in order.
    pub fn ops(self) -> Vec<Op> {
        self.steps.into_iter().map(|(_, op, _)| op).collect()
    }
    /// Whether nothing was recorded: the operator is a primitive.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
    /// A temporary, sized when the fused operator is planned.
    pub fn temp(&mut self, enc: Enc, dims: &[Dim]) -> Ref {
        self.temps.push(Operand::new(enc, dims).domain(Domain::Bytes));
        Ref::Temp(self.temps.len() - 1)
    }
    /// The next launch.
    pub fn step<D: Operator>(&mut self, descriptor: D, io: D::Io<Ref, Ref>) {
        let mut refs = vec![];
        io.visit(&mut |slot| refs.push(slot.into_inner()));
        let op = descriptor.clone().into();
        let planner =
            move |device: &dyn Device, want: &Want| plan_erased(device, &descriptor, want);
        self.steps.push((refs, op, Box::new(planner)));
    }
}

/// A planned decomposition: a kernel made of kernels. Its workspace holds the temporaries, then
/// the largest workspace of a step.
pub(crate) struct Composite {
    temps: Vec<Operand>,
    steps: Vec<(Vec<Ref>, Erased)>,
    bits: String,
    needs: Needs,
    temp_bytes: u64,
}

impl Composite {
    /// `None` for a primitive.
    pub(crate) fn of<D: Operator>(device: &dyn Device, d: &D, want: &Want) -> Result<Option<Self>> {
        let steps = Steps::of(d);
        if steps.steps.is_empty() {
            return Ok(None);
        }
        let mut planned = vec![];
        let mut ids = vec![];
        for (refs, op, planner) in steps.steps {
            ids.push(op.id());
            planned.push((refs, planner(device, want)?));
        }
        let bits = steps_bits(ids.into_iter().zip(planned.iter().map(|(_, step)| step.bits())));
        let temp_bytes = temp_bytes(&steps.temps, &want.limits);
        let step = planned.iter().map(|(_, e)| e.needs().workspace_bytes).max().unwrap_or(0);
        let needs = Needs { workspace_bytes: temp_bytes.saturating_add(step) };
        Ok(Some(Composite { temps: steps.temps, steps: planned, bits, needs, temp_bytes }))
    }
}

fn temp_bytes(temps: &[Operand], extents: &Extents) -> u64 {
    let bytes = |t: &Operand| View::reserved_bytes(t.enc, &t.shape(extents));
    temps.iter().fold(0, |sum, t| sum.saturating_add(bytes(t)))
}

impl Kernel for Composite {
    fn name(&self, _tokens: u64) -> &'static str {
        STEPS
    }
    fn bits(&self) -> &str {
        &self.bits
    }
    fn needs(&self) -> Needs {
        self.needs
    }
    fn launch(&self, io: &Checked<'_>, on: &dyn Stream) -> Result<()> {
        let workspace = io.workspace();
        let mut at = workspace.offset();
        let mut temps = Vec::with_capacity(self.temps.len());
        for temp in &self.temps {
            let shape = temp.shape(io.extents());
            temps.push(View::dense(workspace.alloc(), at, temp.enc, &shape)?);
            at += View::reserved_bytes(temp.enc, &shape);
        }
        let scratch = workspace.rows(self.temp_bytes.min(workspace.bytes())..workspace.bytes())?;
        for (refs, step) in &self.steps {
            let absent: Vec<View> = refs.iter().filter_map(absent_view).collect();
            let mut next_absent = absent.iter();
            let mut views = [workspace; MAX_OPERANDS];
            for (view, r) in views.iter_mut().zip(refs) {
                *view = match r {
                    Ref::Operand(i) => io.views()[*i],
                    Ref::Temp(i) => &temps[*i],
                    Ref::Absent(_) => next_absent.next().expect("one view per absent reference"),
                };
            }
            step.launch(&views[..refs.len()], &scratch, on)?;
        }
        Ok(())
    }
}

fn absent_view(r: &Ref) -> Option<View> {
    match r {
        Ref::Absent(enc) => Some(View::absent(*enc)),
        Ref::Operand(_) | Ref::Temp(_) => None,
    }
}
