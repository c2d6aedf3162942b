//! From a descriptor to launches.

use crate::{
    Class, Device, DeviceId, Dim, Dir, Domain, Error, Extents, Facts, IoSet, Kernel, Layout, Needs,
    Numerics, Op, Operator, Place, Result, SYMS, Stream, Tape, View, Want, compose::Composite,
};
use std::{any::Any, sync::Arc};

/// Operands of one operator, at most.
pub const MAX_OPERANDS: usize = 20;

/// Operands that passed every host-side check. Only a [`Plan`] can make one, so a launch function
/// may rely on it: encodings, layouts and extents are the contract's, all views are of this device
/// (or its group), and no output overlaps another operand or the workspace.
pub struct Checked<'a> {
    op: &'a Op,
    views: &'a [&'a View],
    workspace: &'a View,
    extents: Extents,
}

impl<'a> Checked<'a> {
    /// Of operands that were checked.
    pub(crate) fn new(
        op: &'a Op,
        views: &'a [&'a View],
        workspace: &'a View,
        extents: Extents,
    ) -> Self {
        Checked { op, views, workspace, extents }
    }
    /// The descriptor.
    pub fn op(&self) -> &'a Op {
        self.op
    }
    /// The operands in order of declaration.
    pub fn views(&self) -> &'a [&'a View] {
        self.views
    }
    /// Scratch of at least what the kernel needs; its content is unspecified.
    pub fn workspace(&self) -> &'a View {
        self.workspace
    }
    /// The launch's value of every [`crate::Sym`] that occurs in an operand.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// The same launch with operand `i` replaced by a stand-in of the same encoding and shape, for
    /// wrappers and twins in another layout.
    ///
    /// # Errors
    /// When the stand-in has another encoding or shape, or what `f` returns.
    pub fn with(
        &self,
        i: usize,
        view: &View,
        f: impl FnOnce(&Checked<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut views = self.views.to_vec();
        if views[i].enc() != view.enc() || views[i].shape() != view.shape() {
            let why = "stand-in of another contract".into();
            return Err(Error::BadOperand { op: self.op.id(), operand: "stand-in", why });
        }
        // Shortens the lifetime of the list to that of the stand-in.
        let view: &View = view;
        views[i] = view;
        let (op, workspace, extents) = (self.op, self.workspace, self.extents);
        f(&Checked { op, views: &views, workspace, extents })
    }
}

/// A chosen kernel for one descriptor: typed at the edge, erased within. Cheap to clone.
pub struct Plan<D: Operator> {
    descriptor: D,
    erased: Erased,
}

/// What [`Plan`] is without its type.
#[derive(Clone)]
pub(crate) struct Erased {
    op: Arc<Op>,
    facts: Arc<Facts>,
    limits: Extents,
    device: DeviceId,
    layouts: Arc<[Layout]>,
    kernel: Arc<dyn Kernel>,
}

impl Erased {
    pub(crate) fn needs(&self) -> Needs {
        self.kernel.needs()
    }
    pub(crate) fn bits(&self) -> &str {
        self.kernel.bits()
    }

    /// Check the operands, then launch. Writes nothing when the check fails.
    pub(crate) fn launch(&self, views: &[&View], workspace: &View, on: &dyn Stream) -> Result<()> {
        let extents = self.check(views, workspace)?;
        let io = Checked::new(&self.op, views, workspace, extents);
        match (on as &dyn Any).downcast_ref::<Tape>() {
            Some(tape) => {
                tape.push(&self.op, &self.kernel, &io);
                Ok(())
            }
            None => self.kernel.launch(&io, on),
        }
    }

    /// The single operand check. Every backend relies on it in its SAFETY comments.
    fn check(&self, views: &[&View], workspace: &View) -> Result<Extents> {
        let id = self.facts.id;
        let mut bound = Bound { extents: Extents::default(), seen: [false; SYMS] };
        for (i, ((name, dir, spec), view)) in self.facts.operands.iter().zip(views).enumerate() {
            let bad = |why: String| Error::BadOperand { op: id, operand: name, why };
            if spec.absent {
                if view.is_empty() {
                    continue;
                }
                return Err(bad("this descriptor has no such operand; pass View::absent".into()));
            }
            if view.enc() != spec.enc {
                return Err(bad(format!("is {:?}, the contract says {:?}", view.enc(), spec.enc)));
            }
            if view.alloc().device != self.device && view.alloc().place != Place::Group {
                return Err(bad("lives on another device".into()));
            }
            if view.layout() != self.layouts[i] {
                let (have, want) = (view.layout(), self.layouts[i]);
                return Err(bad(format!("layout {have:?}, this device reads {want:?}; pack it")));
            }
            bound.bind(view.shape(), &spec.dims, &self.limits).map_err(bad)?;
            if *dir != Dir::In {
                let other = (0..views.len()).find(|&j| j != i && view.overlaps(views[j]));
                if let Some(j) = other {
                    return Err(bad(format!("overlaps {}", self.facts.operands[j].0)));
                }
            }
        }
        self.check_workspace(views, workspace)?;
        Ok(bound.extents)
    }

    fn check_workspace(&self, views: &[&View], workspace: &View) -> Result<()> {
        let wanted = self.needs().workspace_bytes;
        if wanted == 0 {
            return Ok(());
        }
        let bad = |why: String| Error::BadOperand { op: self.facts.id, operand: "workspace", why };
        if workspace.alloc().device != self.device {
            return Err(bad("lives on another device".into()));
        }
        if workspace.bytes() < wanted {
            return Err(bad(format!("has {} bytes, needs {wanted}", workspace.bytes())));
        }
        if views.iter().any(|v| v.overlaps(workspace)) {
            return Err(bad("overlaps an operand".into()));
        }
        Ok(())
    }
}

/// Extents as the operands of one launch bind them.
struct Bound {
    extents: Extents,
    seen: [bool; SYMS],
}

impl Bound {
    fn bind(
        &mut self,
        shape: &[u64],
        dims: &[Dim],
        limits: &Extents,
    ) -> std::result::Result<(), String> {
        if shape.len() != dims.len() {
            return Err(format!("has {} axes, the contract says {dims:?}", shape.len()));
        }
        for (&n, dim) in shape.iter().zip(dims) {
            match *dim {
                Dim::Is(m) if n != m => {
                    return Err(format!("shape {shape:?}, the contract says {dims:?}"));
                }
                Dim::Of(s) if self.seen[s as usize] && self.extents.at(s) != n => {
                    let other = self.extents.at(s);
                    return Err(format!("{} is {n} here and {other} elsewhere", s.name()));
                }
                Dim::Of(s) if n > limits.at(s) => {
                    return Err(format!("{} {n} over the planned {}", s.name(), limits.at(s)));
                }
                Dim::Of(s) => {
                    self.extents.set(s, n);
                    self.seen[s as usize] = true;
                }
                Dim::Is(_) => {}
            }
        }
        Ok(())
    }
}

impl<D: Operator> Clone for Plan<D> {
    fn clone(&self) -> Self {
        Plan { descriptor: self.descriptor.clone(), erased: self.erased.clone() }
    }
}

impl<D: Operator> Plan<D> {
    /// What was planned.
    pub fn descriptor(&self) -> &D {
        &self.descriptor
    }
    /// The row that runs `rows` rows of data.
    pub fn kernel(&self, rows: u64) -> &'static str {
        self.erased.kernel.name(rows)
    }
    /// The bits of the chosen rows.
    pub fn bits(&self) -> &str {
        self.erased.bits()
    }
    /// Scratch that every launch must be given.
    pub fn workspace_bytes(&self) -> u64 {
        self.erased.needs().workspace_bytes
    }
    /// Check the operands and run. Allocates nothing, may be captured.
    ///
    /// # Errors
    /// [`Error::BadOperand`] naming the operand, before a byte is written; device errors.
    pub fn launch(&self, on: &dyn Stream, workspace: &View, io: D::Io<&View, &View>) -> Result<()> {
        let mut views = [workspace; MAX_OPERANDS];
        let mut count = 0;
        io.visit(&mut |slot| {
            views[count] = slot.into_inner();
            count += 1;
        });
        self.erased.launch(&views[..count], workspace, on)
    }
}

fn layouts(device: &dyn Device, facts: &Facts) -> Arc<[Layout]> {
    let one = |operand: &crate::Operand| match operand.domain {
        Domain::Weight(class) if !operand.absent => {
            device
                .layout(class, operand.enc, part_shape(class, &operand.shape(&Extents::default())))
                .0
        }
        _ => Layout::Plain,
    };
    facts.operands.iter().map(|(_, _, operand)| one(operand)).collect()
}

/// The shape that decides a weight's layout: that of one part of a stacked weight.
fn part_shape(class: Class, shape: &[u64]) -> &[u64] {
    if class == Class::Experts && shape.len() > 2 { &shape[1..] } else { shape }
}

impl Erased {
    fn of<D: Operator>(
        device: &dyn Device,
        d: &D,
        limits: Extents,
        kernel: Arc<dyn Kernel>,
    ) -> Self {
        let facts = Arc::new(Facts::of(d));
        let layouts = layouts(device, &facts);
        let op = Arc::new(d.clone().into());
        Erased { op, facts, limits, device: device.info().id, layouts, kernel }
    }
}

pub(crate) fn plan_erased<D: Operator>(device: &dyn Device, d: &D, want: &Want) -> Result<Erased> {
    d.check()?;
    let kernel = match device.prepare(&d.clone().into(), want) {
        Err(unsupported @ Error::Unsupported { .. }) => match Composite::of(device, d, want)? {
            Some(composite) => Arc::new(composite) as Arc<dyn Kernel>,
            None => return Err(unsupported),
        },
        other => other?,
    };
    Ok(Erased::of(device, d, want.limits, kernel))
}

impl dyn Device {
    /// Pick kernels and size their workspace; falls back to the operator's decomposition. May
    /// fail; nothing after it allocates.
    ///
    /// # Errors
    /// [`Error::BadDescriptor`], or [`Error::Unsupported`] with every row's reason.
    pub fn plan<D: Operator>(&self, descriptor: D, want: &Want) -> Result<Plan<D>> {
        let erased = plan_erased(self, &descriptor, want)?;
        Ok(Plan { descriptor, erased })
    }

    /// The operator by its decomposition, whether or not a fused kernel exists; `None` for a
    /// primitive.
    ///
    /// # Errors
    /// As [`Device::plan`](trait@Device).
    pub fn plan_decomposed<D: Operator>(
        &self,
        descriptor: D,
        want: &Want,
    ) -> Result<Option<Plan<D>>> {
        descriptor.check()?;
        let Some(composite) = Composite::of(self, &descriptor, want)? else { return Ok(None) };
        let erased = Erased::of(self, &descriptor, want.limits, Arc::new(composite));
        Ok(Some(Plan { descriptor, erased }))
    }
}

/// Where launches go: a stream and the scratch its kernels may use.
#[derive(Clone, Copy)]
pub struct Lane<'a> {
    /// The queue.
    pub stream: &'a dyn Stream,
    /// Scratch, at least the largest need of the plans that run here.
    pub workspace: &'a View,
    /// Where work goes that need not be done before what is launched here next.
    pub side: Option<Side<'a>>,
}

/// A second queue beside that of a [`Lane`], with scratch of its own.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The queue.
    pub stream: &'a dyn Stream,
    /// Scratch, at least the largest need of the plans that run there.
    pub workspace: &'a View,
}

impl<'a> Lane<'a> {
    /// A lane for work that needs what was launched here so far, but nothing launched later; nothing
    /// here needs it until [`Lane::join`]. This lane itself where it has no side, and on a [`Tape`],
    /// which has one order.
    ///
    /// # Errors
    /// As [`Stream::wait`].
    pub fn fork(&self) -> Result<Lane<'a>> {
        let Some(Side { stream, workspace }) = self.beside() else { return Ok(*self) };
        stream.wait(self.stream)?;
        Ok(Lane { stream, workspace, side: None })
    }

    /// What is launched here from now on needs everything that was launched on the side.
    ///
    /// # Errors
    /// As [`Stream::wait`].
    pub fn join(&self) -> Result<()> {
        self.beside().map_or(Ok(()), |side| self.stream.wait(side.stream))
    }

    fn beside(&self) -> Option<Side<'a>> {
        self.side.filter(|_| !(self.stream as &dyn Any).is::<Tape>())
    }

    /// [`Plan::launch`] here.
    ///
    /// # Errors
    /// As [`Plan::launch`].
    pub fn run<D: Operator>(&self, plan: &Plan<D>, io: D::Io<&View, &View>) -> Result<()> {
        plan.launch(self.stream, self.workspace, io)
    }
}

impl Want {
    /// Row-invariant results up to these extents: what the engine asks for.
    pub fn row_invariant(limits: Extents) -> Want {
        Want { numerics: Numerics::RowInvariant, limits }
    }
}
