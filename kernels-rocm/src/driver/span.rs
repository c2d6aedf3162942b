//! Parts of reservations.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use super::{Context, Failure, Reservation, Result};

/// Bytes of a reservation.
#[derive(Clone, Debug)]
pub struct Span {
    reservation: Arc<Reservation>,
    range: Range<u64>,
}

impl Span {
    /// Bytes `range` of a reservation.
    ///
    /// # Errors
    /// When they pass its end.
    pub fn new(reservation: &Arc<Reservation>, range: Range<u64>) -> Result<Span> {
        if range.start <= range.end && range.end <= reservation.bytes() {
            return Ok(Span { reservation: reservation.clone(), range });
        }
        let why = format!("bytes {range:?} of a reservation of {}", reservation.bytes());
        Err(Failure::refused("span", why))
    }

    /// Part of it, counted from its start.
    ///
    /// # Errors
    /// When it passes the end.
    pub fn part(&self, range: Range<u64>) -> Result<Span> {
        let start = self.range.start;
        let moved = start.saturating_add(range.start)..start.saturating_add(range.end);
        if moved.end > self.range.end {
            return Err(Failure::refused("span", format!("bytes {range:?} of {:?}", self.range)));
        }
        Span::new(&self.reservation, moved)
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        self.reservation.context()
    }

    /// Where the driver finds it.
    pub(super) fn pointer(&self) -> *mut c_void {
        self.reservation.pointer(self.range.start)
    }

    /// Its bytes.
    pub fn length(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }

    /// Whether it is `length` bytes long, and may be written if that is wanted.
    pub(super) fn require(&self, length: usize, writable: bool) -> Result<()> {
        if length != self.length() {
            let why = format!("{length} bytes for a span of {}", self.length());
            return Err(Failure::refused("hipMemcpyAsync", why));
        }
        if writable && !self.reservation.is_writable() {
            return Err(Failure::refused("hipMemcpyAsync", "a mapped file is read-only".into()));
        }
        Ok(())
    }
}
