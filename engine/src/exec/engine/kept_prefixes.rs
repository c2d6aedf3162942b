//! The prefix cache from one process to the next.

use super::Engine;
use crate::error::{Error, Result};
use crate::exec::Forward;
use crate::kv::{PrefixStore, Restored, WINDOW_PAGE_TOKENS};
use std::path::Path;

impl<F: Forward> Engine<F> {
    /// Takes over what `folder` keeps of an earlier engine's prefixes, and keeps this one's there from
    /// now on, as [`Engine::save_prefixes`] is called. `salt` names the checkpoint, the numerics and
    /// whatever else the bytes of the caches depend on: what was kept under another is given up. A hit
    /// of what came back is the same bits as a cold run, as any other.
    ///
    /// # Errors
    /// [`Error::Argument`] without a prefix cache, when this engine has run, or when another process has
    /// the folder; [`Error::Io`] and [`Error::File`] for a folder that cannot be used.
    pub fn keep_prefixes(&mut self, folder: &Path, salt: &str) -> Result<Restored> {
        let refuse = |problem: &str| Err(Error::argument("prefix cache folder", problem));
        if self.options.resume_points == 0 {
            return refuse("there is no prefix cache to keep; turn it on");
        }
        if self.cache.blocks() > 0 {
            return refuse("the prefix cache is in use; name the folder before the first request");
        }
        let Some(memory) = self.model.page_memory() else {
            return refuse("this model's caches cannot be read; leave the folder out");
        };
        let window_pages = self.geometry.window_tokens.div_ceil(WINDOW_PAGE_TOKENS);
        let into = (&mut self.cache, &self.pools);
        let (store, restored) = PrefixStore::open((folder, salt), into, memory, window_pages)?;
        self.store = Some(store);
        Ok(restored)
    }

    /// Saves a slice of what the prefix cache has and its folder has not; answers whether there is
    /// more. Without a folder there is nothing to do.
    ///
    /// # Errors
    /// [`Error::Io`] when the folder takes no more: nothing is kept there from then on, and the engine
    /// goes on. [`Error::Device`] as a step.
    pub fn save_prefixes(&mut self) -> Result<bool> {
        let (Some(store), Some(memory)) = (&mut self.store, self.model.page_memory()) else {
            return Ok(false);
        };
        let saved = store.save(&self.cache, memory);
        if saved.is_err() {
            self.store = None;
        }
        saved
    }
}
