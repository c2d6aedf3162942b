//! Caches that look as if a long text had been read.

use tandem_hal::{Enc, Form, Record, Stream, View};

use super::caches::{Caches, SourceCaches};
use crate::error::{Error, Result};
use crate::weights::random_codes::SplitMix;

/// Entries of the block that caches repeat.
const BLOCK_ENTRIES: u64 = 1 << 12;
/// Bytes written at once.
const PIECE_BYTES: u64 = 32 << 20;

impl Caches {
    /// Random entries everywhere, each as its writer could have made it.
    ///
    /// # Errors
    /// When the device fails.
    pub fn randomise(&self, on: &dyn Stream, seed: u64) -> Result<()> {
        let mut bits = SplitMix::new(seed);
        for window in &self.windows {
            fill(window, on, &mut bits)?;
        }
        for SourceCaches { latents, keys, open, .. } in &self.sources {
            for view in [Some(latents), Some(keys), open.as_ref()].into_iter().flatten() {
                fill(view, on, &mut bits)?;
            }
        }
        Ok(())
    }
}

/// Fills a cache `[pages, page entries]`.
fn fill(cache: &View, on: &dyn Stream, bits: &mut SplitMix) -> Result<()> {
    let (pages, page_entries) = (cache.shape()[0], cache.shape()[1]);
    let Enc::Record(record) = cache.enc() else {
        return Err(Error::Internal { invariant: "a cache holds records".into() });
    };
    let block_pages = (BLOCK_ENTRIES / page_entries).max(1);
    let mut block = Vec::new();
    for _ in 0..block_pages * page_entries {
        entry(record, bits, &mut block)?;
    }
    let piece_pages = (PIECE_BYTES / block.len() as u64).max(1) * block_pages;
    let piece = block.repeat((piece_pages / block_pages) as usize);
    for start in (0..pages).step_by(piece_pages as usize) {
        let rows = start..(start + piece_pages).min(pages);
        let bytes = (rows.end - rows.start) * page_entries * record.bytes();
        on.write(&cache.rows(rows)?, &piece[..bytes as usize])?;
    }
    Ok(())
}

/// One entry: codes, then scales near those of values about 1.
fn entry(record: Record, bits: &mut SplitMix, to: &mut Vec<u8>) -> Result<()> {
    let width = u64::from(record.width);
    let mut put = |count: u64, one: &mut dyn FnMut(&mut SplitMix) -> u8| {
        to.extend((0..count).map(|_| one(bits)));
    };
    match record.form {
        Form::Mxfp8 => {
            put(width, &mut SplitMix::e4m3);
            put(width / 32, &mut |bits| bits.byte(119, 121));
        }
        Form::Nvfp4 => {
            put(width / 2, &mut |bits| bits.bits() as u8);
            put(width / 16, &mut |bits| bits.byte(0x24, 0x2C));
        }
        Form::Mxfp4 => {
            put(width / 2, &mut |bits| bits.bits() as u8);
            put(width / 32, &mut |bits| bits.byte(124, 126));
        }
        Form::F32 => {
            for _ in 0..width {
                to.extend(bits.between(-1.0, 1.0).to_le_bytes());
            }
        }
        _ => {
            let invariant = format!("no cache of this model has records {record:?}");
            return Err(Error::Internal { invariant });
        }
    }
    Ok(())
}
