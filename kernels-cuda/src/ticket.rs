//! Points in a queue.

use crate::{
    driver::{Event, Pending},
    shared::Shared,
};
use std::{any::Any, sync::Arc, time::Duration};
use tandem_hal::{Error, Result, Ticket};

/// A point that a stream marked, or one behind a read-back.
pub(crate) struct CudaTicket {
    pub(crate) shared: Arc<Shared>,
    pub(crate) point: Point,
}

pub(crate) enum Point {
    Mark(Event),
    Read(Pending),
}

impl CudaTicket {
    fn event(&self) -> &Event {
        match &self.point {
            Point::Mark(event) => event,
            Point::Read(pending) => pending.at(),
        }
    }
}

impl Ticket for CudaTicket {
    fn ready(&self) -> Result<bool> {
        self.shared.alive()?;
        self.shared.told(self.event().passed())
    }

    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        self.shared.alive()?;
        let CudaTicket { shared, point } = *self;
        match point {
            Point::Mark(event) => shared.passed(event.wait()).map(|()| vec![]),
            Point::Read(pending) => shared.passed(pending.wait()),
        }
    }

    fn since(&self, earlier: &dyn Ticket) -> Result<Duration> {
        let foreign = Error::ForeignObject { what: "ticket" };
        let earlier = (earlier as &dyn Any).downcast_ref::<CudaTicket>().ok_or(foreign)?;
        self.shared.alive()?;
        self.shared.told(self.event().since(earlier.event()))
    }
}
