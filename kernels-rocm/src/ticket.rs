//! Points in a queue.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tandem_hal::{Error, Result, Ticket};

use crate::driver::{Event, Pending};
use crate::shared::Shared;

/// A point that a stream marked, or one behind a read-back.
pub(crate) struct RocmTicket {
    pub(crate) shared: Arc<Shared>,
    pub(crate) point: Point,
}

pub(crate) enum Point {
    Mark(Event),
    Read(Pending),
}

impl RocmTicket {
    fn event(&self) -> &Event {
        match &self.point {
            Point::Mark(event) => event,
            Point::Read(pending) => pending.at(),
        }
    }
}

impl Ticket for RocmTicket {
    fn ready(&self) -> Result<bool> {
        self.shared.alive()?;
        self.shared.told(self.event().passed())
    }

    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        self.shared.alive()?;
        let RocmTicket { shared, point } = *self;
        match point {
            Point::Mark(event) => shared.passed(event.wait()).map(|()| vec![]),
            Point::Read(pending) => shared.passed(pending.wait()),
        }
    }

    fn since(&self, earlier: &dyn Ticket) -> Result<Duration> {
        let foreign = Error::ForeignObject { what: "ticket" };
        let earlier = (earlier as &dyn Any).downcast_ref::<RocmTicket>().ok_or(foreign)?;
        self.shared.alive()?;
        self.shared.told(self.event().since(earlier.event()))
    }
}
