//! The bytes behind pages.

use crate::error::Result;

/// Which of the pools a page is of, for its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Compressed entries and index keys, of all sources.
    Compressed,
    /// Window entries, of all layers and draft stages.
    Window,
}

/// What a model's caches hold, page by page. The bytes mean something to the same model on the same
/// kind of device alone.
pub trait PageMemory {
    /// Bytes of a page.
    fn page_bytes(&mut self, kind: PageKind) -> u64;

    /// Copies a page to the host.
    ///
    /// # Errors
    /// When the device fails.
    fn read_page(&mut self, kind: PageKind, page: u32) -> Result<Vec<u8>>;

    /// Replaces what a page holds by `bytes`, as they were read.
    ///
    /// # Errors
    /// When the device fails.
    fn write_page(&mut self, kind: PageKind, page: u32, bytes: &[u8]) -> Result<()>;
}
