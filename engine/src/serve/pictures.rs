//! Pictures of requests on the host.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::options::PictureBounds;
use crate::vision::{Error, PictureInput, PictureLimits, decode};

/// What places of the host's memory are counted in.
const PLACE_BYTES: u64 = 1 << 10;

/// Bounds the memory that the pictures of all requests take, while they are decoded and while they
/// wait for the tower.
pub(super) struct PictureRoom {
    bounds: PictureBounds,
    /// Held while a picture is decoded: one at a time, since that may take most of a gigabyte.
    decoding: Mutex<()>,
    places: Arc<Semaphore>,
}

/// Prepared pictures of one request, and the memory they may take.
#[derive(Debug, Default)]
pub(super) struct PreparedPictures {
    /// In the order of the request.
    pub(super) inputs: Vec<Arc<PictureInput>>,
    /// Given back when dropped.
    pub(super) room: Vec<OwnedSemaphorePermit>,
}

impl PictureRoom {
    /// Room within `bounds`.
    pub(super) fn new(bounds: PictureBounds) -> Self {
        let places = usize::try_from(bounds.waiting_bytes / PLACE_BYTES).unwrap_or(usize::MAX);
        let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Self { bounds, decoding: Mutex::default(), places }
    }

    /// Most pictures of a request.
    pub(super) fn most(&self) -> usize {
        self.bounds.per_request
    }

    /// Decodes a file and prepares it for the tower.
    ///
    /// # Errors
    /// What is wrong with the picture.
    pub(super) fn prepare(
        &self,
        file: &[u8],
        limits: &PictureLimits,
    ) -> Result<Arc<PictureInput>, Error> {
        // A decoder that panicked left nothing behind.
        let _one = self.decoding.lock().unwrap_or_else(PoisonError::into_inner);
        let picture = decode(file, &self.bounds.decoding)?;
        PictureInput::from_picture(&picture, limits).map(Arc::new)
    }

    /// Memory for a prepared picture; `None` when others hold too much.
    pub(super) fn hold(&self, input: &PictureInput) -> Option<OwnedSemaphorePermit> {
        let bytes = size_of_val(input.patches.values()) as u64;
        let places = u32::try_from(bytes.div_ceil(PLACE_BYTES)).ok()?;
        Arc::clone(&self.places).try_acquire_many_owned(places).ok()
    }
}
