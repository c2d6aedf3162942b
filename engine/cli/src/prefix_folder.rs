//! The folder that keeps the prefix cache from one start to the next.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tandem_engine::kv::{PrefixStore, Restored};
use tandem_engine::weights::Checkpoint;
use tandem_engine::{Error, Result};

use crate::ready::{ModelEngine, Ready};

/// Where prefixes are kept, and what their bytes depend on.
pub(crate) struct PrefixFolder {
    folder: PathBuf,
    salt: String,
}

impl PrefixFolder {
    /// Refuses a folder that cannot be used, before weights are read.
    ///
    /// # Errors
    /// What is wrong with it, or that there is no prefix cache.
    pub(crate) fn check(folder: &Path, prefix_cache: &str) -> Result<()> {
        if prefix_cache == "off" {
            return Err(Error::Argument {
                argument: "--prefix-cache-dir".into(),
                problem: "there is no prefix cache to keep; leave out --prefix-cache off".into(),
            });
        }
        go_on_without_room((), PrefixStore::check(folder))
    }

    /// For engines like this one.
    ///
    /// # Errors
    /// A checkpoint that cannot be read.
    pub(crate) fn new(folder: PathBuf, ready: &Ready) -> Result<Self> {
        let source = &ready.source;
        let checkpoint = Checkpoint::open(&source.files)?.likeness(&source.texts()?)?;
        let (numerics, devices) = (ready.numerics(), &ready.devices);
        let version = env!("CARGO_PKG_VERSION");
        let salt = format!("{checkpoint} {numerics} {devices} {version}");
        Ok(Self { folder, salt })
    }

    /// Has an engine take over what is kept, and keep its own there.
    ///
    /// # Errors
    /// A folder that cannot be used.
    pub(crate) fn begin(&self, engine: &mut ModelEngine) -> Result<()> {
        let kept = engine.keep_prefixes(&self.folder, &self.salt);
        let restored = go_on_without_room(Restored::default(), kept)?;
        let (tokens, points) = (restored.tokens, restored.resume_points);
        let folder = self.folder.display();
        tracing::info!(%folder, tokens, points, "prefixes of an earlier start");
        if restored.left_out > 0 {
            tracing::warn!(%folder, left_out = restored.left_out, "pages are spoilt or find no room");
        }
        Ok(())
    }
}

/// A full disk ends the keeping and nothing else; `nothing` is what there is then.
fn go_on_without_room<T>(nothing: T, kept: Result<T>) -> Result<T> {
    match kept {
        Err(error) if is_full(&error) => {
            tracing::warn!("prefixes are not kept: {error}");
            Ok(nothing)
        }
        kept => kept,
    }
}

fn is_full(error: &Error) -> bool {
    let Error::Io { source, .. } = error else { return false };
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
