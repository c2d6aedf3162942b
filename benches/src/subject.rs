//! An operator with operands, ready to launch.

use std::{sync::Arc, time::Duration};
use tandem_hal::{
    Arena, Device, Dir, Domain, Enc, Extents, Facts, IoSet, Layout, Operator, Place, Plan, Result,
    Slot, Stream, View, Want,
};
use tandem_reference::{Fill, Profile};

/// A planned operator and its operands on a device.
pub struct Subject<D: Operator> {
    plan: Plan<D>,
    stream: Box<dyn Stream>,
    workspace: View,
    operands: Vec<(Dir, View)>,
}

impl<D: Operator> Subject<D> {
    /// Plan `descriptor` for `extents`, reserve its operands and fill them from a fixed seed.
    ///
    /// # Errors
    /// When no row accepts it, or memory is short.
    pub fn new(device: &Arc<dyn Device>, descriptor: &D, extents: &Extents) -> Result<Self> {
        let want = Want::row_invariant(*extents);
        let plan = device.plan(descriptor.clone(), &want)?;
        let stream = device.stream()?;
        let fill = Fill { profile: Profile::Normal, ..Fill::of_seed(1) };
        let mut operands = vec![];
        for (place, (_, dir, operand)) in Facts::of(descriptor).operands.iter().enumerate() {
            let view = if operand.absent {
                View::absent(operand.enc)
            } else {
                let shape = operand.shape(extents);
                let bytes = View::reserved_bytes(operand.enc, &shape);
                let mut arena = Arena::new(&**device, bytes, "operand")?;
                let plain = arena.view(operand.enc, &shape)?;
                if *dir != Dir::Out {
                    stream.write(&plain, &fill.bytes(place, operand, extents))?;
                }
                packed(&**device, &*stream, operand.domain, plain)?
            };
            operands.push((*dir, view));
        }
        let bytes = plan.workspace_bytes();
        let scratch = device.allocate(bytes, Place::Device, "workspace")?;
        let workspace = View::dense(&scratch, 0, Enc::U8, &[bytes])?;
        Ok(Subject { plan, stream, workspace, operands })
    }

    /// Device time of `launches` launches, one after the other.
    ///
    /// # Errors
    /// What the launches meet.
    pub fn time(&self, launches: u64) -> Result<Duration> {
        let start = self.stream.mark()?;
        for _ in 0..launches {
            let mut slots = self.operands.iter().map(|(dir, view)| match dir {
                Dir::In => Slot::In(view),
                Dir::Out | Dir::InOut => Slot::Out(view),
            });
            let io = <D::Io<&View, &View> as IoSet<_, _>>::from_slots(&mut slots);
            self.plan.launch(&*self.stream, &self.workspace, io)?;
        }
        let end = self.stream.mark()?;
        self.stream.sync()?;
        end.since(&*start)
    }
}

/// The weight in the layout that the device's kernels read; anything else as it is.
fn packed(device: &dyn Device, stream: &dyn Stream, domain: Domain, plain: View) -> Result<View> {
    let Domain::Weight(class) = domain else { return Ok(plain) };
    let shape = plain.shape().to_vec();
    let parts = if class == tandem_hal::Class::Experts { shape[0] } else { 1 };
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
