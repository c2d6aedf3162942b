//! An operator with operands, ready to launch.

use crate::{Inputs, Rotation};
use std::{sync::Arc, time::Duration};
use tandem_hal::{
    Arena, Class, Device, Dir, Domain, Enc, Extents, Facts, Graph, IoSet, Layout, Operand,
    Operator, Place, Plan, Result, STEPS, Slot, Stream, View, Want,
};

/// The byte that stands in outputs before a comparison: NaN in every float format, -1 as an
/// integer.
const POISON: u8 = 0xFF;

/// One operand and the copies that launches take in turn.
struct Turns {
    name: &'static str,
    dir: Dir,
    spec: Operand,
    copies: Vec<View>,
    /// What the first copy was filled with; empty for outputs.
    bytes: Vec<u8>,
}

/// A planned operator and its operands on a device.
pub struct Subject<D: Operator> {
    plan: Plan<D>,
    stream: Box<dyn Stream>,
    workspace: View,
    operands: Vec<Turns>,
}

impl<D: Operator> Subject<D> {
    /// Plan `descriptor` for `extents`, by its decomposition for the row [`STEPS`]; reserve as many
    /// copies of its operands as `rotation` says and fill them from fixed seeds.
    ///
    /// # Errors
    /// When no row accepts it, or memory is short.
    pub fn new(
        device: &Arc<dyn Device>,
        descriptor: &D,
        extents: &Extents,
        row: &str,
        rotation: &Rotation,
    ) -> Result<Self> {
        let want = Want::row_invariant(*extents);
        let steps =
            if row == STEPS { device.plan_decomposed(descriptor.clone(), &want)? } else { None };
        let plan = match steps {
            Some(steps) => steps,
            None => device.plan(descriptor.clone(), &want)?,
        };
        let stream = device.stream()?;
        let op = descriptor.clone().into();
        let inputs = Inputs::new(&op, extents);
        let facts = Facts::of(descriptor);
        let operands = facts.operands.into_iter().enumerate();
        let fill = |(place, (name, dir, spec)): (usize, (_, Dir, Operand))| {
            let copies = rotation.copies(dir, &spec);
            let make = Make { device, stream: &*stream, extents };
            let (copies, bytes) =
                make.copies(copies, dir, &spec, |variant| inputs.bytes(place, &spec, variant))?;
            Ok(Turns { name, dir, spec, copies, bytes })
        };
        let operands = operands.map(fill).collect::<Result<Vec<_>>>()?;
        let bytes = plan.workspace_bytes();
        let scratch = device.allocate(bytes, Place::Device, "workspace")?;
        let workspace = View::dense(&scratch, 0, Enc::U8, &[bytes])?;
        Ok(Subject { plan, stream, workspace, operands })
    }

    /// Where it is launched.
    pub fn stream(&self) -> &dyn Stream {
        &*self.stream
    }

    fn launch(&self, turn: usize) -> Result<()> {
        let mut slots = self.operands.iter().map(|operand| {
            let view = &operand.copies[turn % operand.copies.len()];
            if operand.dir == Dir::In { Slot::In(view) } else { Slot::Out(view) }
        });
        let io = <D::Io<&View, &View> as IoSet<_, _>>::from_slots(&mut slots);
        self.plan.launch(&*self.stream, &self.workspace, io)
    }

    /// Device time of `launches` launches, one after the other, each on the next copies.
    ///
    /// # Errors
    /// What the launches meet.
    pub fn time(&self, launches: u64) -> Result<Duration> {
        let start = self.stream.mark()?;
        for turn in 0..launches as usize {
            self.launch(turn)?;
        }
        let end = self.stream.mark()?;
        self.stream.sync()?;
        end.since(&*start)
    }

    /// A graph of `launches` launches, each on the next copies.
    ///
    /// # Errors
    /// What recording meets.
    pub fn capture(&self, launches: u64) -> Result<Box<dyn Graph>> {
        self.stream.capture(&mut || (0..launches as usize).try_for_each(|turn| self.launch(turn)))
    }

    /// One launch on the first copies, with outputs poisoned before: every operand with its bytes
    /// before the launch, and those of outputs after it.
    ///
    /// # Errors
    /// What the launch meets.
    pub fn once<'s>(&'s self) -> Result<Vec<Once<'s>>> {
        for operand in self.operands.iter().filter(|o| o.dir != Dir::In && !o.spec.absent) {
            match operand.dir {
                Dir::InOut => self.stream.write(&operand.copies[0], &operand.bytes)?,
                _ => self.stream.fill(&operand.copies[0], POISON)?,
            }
        }
        self.launch(0)?;
        self.stream.sync()?;
        let one = |operand: &'s Turns| -> Result<Once<'s>> {
            let Turns { name, dir, spec, copies, bytes } = operand;
            let written = *dir != Dir::In && !spec.absent;
            let after = if written { self.stream.read(&copies[0])? } else { vec![] };
            Ok(Once { name, dir: *dir, spec, before: bytes, after })
        };
        self.operands.iter().map(one).collect()
    }
}

/// An operand of one launch.
pub struct Once<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its direction.
    pub dir: Dir,
    /// Its specification.
    pub spec: &'a Operand,
    /// What it held; empty for outputs.
    pub before: &'a [u8],
    /// What an output holds; empty for inputs.
    pub after: Vec<u8>,
}

/// Where copies are made.
struct Make<'a> {
    device: &'a Arc<dyn Device>,
    stream: &'a dyn Stream,
    extents: &'a Extents,
}

impl Make<'_> {
    /// `count` copies, filled by `bytes` of their number where they are lists, else all alike; with
    /// the bytes of the first.
    fn copies(
        &self,
        count: u64,
        dir: Dir,
        spec: &Operand,
        bytes: impl Fn(u64) -> Vec<u8>,
    ) -> Result<(Vec<View>, Vec<u8>)> {
        if spec.absent {
            return Ok((vec![View::absent(spec.enc)], vec![]));
        }
        let shape = spec.shape(self.extents);
        let each = View::reserved_bytes(spec.enc, &shape);
        let mut arena = Arena::new(&**self.device, each.saturating_mul(count), "operand")?;
        let first = if dir == Dir::Out { vec![] } else { bytes(0) };
        let lists = matches!(spec.domain, Domain::Index { .. });
        let mut views = Vec::with_capacity(count as usize);
        for variant in 0..count {
            let plain = arena.view(spec.enc, &shape)?;
            match (dir, lists && variant > 0) {
                (Dir::Out, _) => {}
                (_, true) => self.stream.write(&plain, &bytes(variant))?,
                (_, false) => self.stream.write(&plain, &first)?,
            }
            views.push(packed(&**self.device, self.stream, spec.domain, plain)?);
        }
        Ok((views, first))
    }
}

/// The weight in the layout that the device's kernels read; anything else as it is.
fn packed(device: &dyn Device, stream: &dyn Stream, domain: Domain, plain: View) -> Result<View> {
    let Domain::Weight(class) = domain else { return Ok(plain) };
    let shape = plain.shape().to_vec();
    let parts = if class == Class::Experts { shape[0] } else { 1 };
    let part_shape = if parts == 1 && shape.len() < 3 { &shape[..] } else { &shape[1..] };
    let (layout, bytes) = device.layout(class, plain.enc(), part_shape);
    if layout == Layout::Plain {
        return Ok(plain);
    }
    let mut arena = Arena::new(device, (bytes * parts).next_multiple_of(256), "weight")?;
    let weight = arena.private(plain.enc(), &shape, layout, bytes * parts)?;
    if shape.len() < 3 {
        device.pack(&plain, &weight, stream)?;
    } else {
        for i in 0..parts {
            device.pack(&plain.part(i)?, &weight.part(i)?, stream)?;
        }
    }
    Ok(weight)
}
