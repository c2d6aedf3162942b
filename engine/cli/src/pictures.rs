//! Picture files.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use tandem_engine::model::v41::Config;
use tandem_engine::model::v41::vision_tower::picture_limits;
use tandem_engine::vision::{DecodeLimits, PictureInput};
use tandem_engine::{Error, Result};

/// Reads a picture and prepares it for the model's tower.
///
/// # Errors
/// A text-only model, a path that cannot be read, or a file that is no picture.
pub(crate) fn read(path: &str, config: &Config) -> Result<Arc<PictureInput>> {
    let (limits, decoding) = (picture_limits(config)?, DecodeLimits::default());
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to be refused.
    File::open(path)
        .and_then(|file| file.take(decoding.max_file_bytes + 1).read_to_end(&mut bytes))
        .map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?;
    let input = PictureInput::from_file(&bytes, &decoding, &limits);
    let input =
        input.map_err(|error| Error::File { file: path.to_owned(), problem: error.to_string() })?;
    Ok(Arc::new(input))
}
