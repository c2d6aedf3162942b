//! Handles: numbers that pass for pointers, none of them given out twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::code::{Code, Result};

/// Things by handle.
pub(crate) struct Handles<T> {
    things: HashMap<usize, T>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { things: HashMap::new() }
    }
}

/// Handles of all kinds are different, so that one of another kind is found out.
static NEXT: AtomicUsize = AtomicUsize::new(1);

impl<T> Handles<T> {
    /// A handle for a new thing.
    pub(crate) fn insert(&mut self, thing: T) -> usize {
        // Looks like an address where nothing ever is.
        let handle = 0x1000 + 16 * NEXT.fetch_add(1, Relaxed);
        self.things.insert(handle, thing);
        handle
    }

    pub(crate) fn get(&self, handle: usize) -> Result<&T> {
        self.things.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn get_mut(&mut self, handle: usize) -> Result<&mut T> {
        self.things.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn remove(&mut self, handle: usize) -> Result<T> {
        self.things.remove(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.things.retain(|_, thing| keep(thing));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.things.iter().map(|(handle, thing)| (*handle, thing))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.values_mut()
    }
}
