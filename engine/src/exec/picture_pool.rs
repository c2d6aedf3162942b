//! Who holds which picture rows.

use super::{EngineOptions, Geometry};

/// The free parts of the picture rows. A part holds the rows of one picture, the largest there can
/// be, from the step that reads the picture to the one that computes the end of its span.
#[derive(Debug)]
pub(super) struct PicturePool {
    /// First rows of the free parts.
    free: Vec<u64>,
}

impl PicturePool {
    /// All parts are free.
    pub(super) fn new(options: &EngineOptions, geometry: &Geometry) -> Self {
        let part = geometry.pictures.map_or(0, |pictures| pictures.tokens);
        let parts = geometry.pictures.map_or(0, |_| options.pictures);
        Self { free: (0..parts).rev().map(|at| at * part).collect() }
    }

    /// The first row of a free part.
    pub(super) fn take(&mut self) -> Option<u64> {
        self.free.pop()
    }

    /// Takes a part back.
    pub(super) fn give(&mut self, first_row: u64) {
        self.free.push(first_row);
    }

    /// Free parts.
    pub(super) fn free(&self) -> u64 {
        self.free.len() as u64
    }
}
