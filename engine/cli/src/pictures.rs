//! Picture files.

use std::sync::Arc;

use tandem_engine::model::v41::Config;
use tandem_engine::model::v41::vision_tower::picture_limits;
use tandem_engine::vision::{DecodeLimits, PictureInput};
use tandem_engine::{Error, Result, regular_file};

/// Reads a picture and prepares it for the model's tower.
///
/// # Errors
/// A text-only model, a path that cannot be read, or a file that is no picture.
pub(crate) fn read(path: &str, config: &Config) -> Result<Arc<PictureInput>> {
    let (limits, decoding) = (picture_limits(config)?, DecodeLimits::default());
    // One byte more than allowed is enough to be refused.
    let limit_bytes = decoding.max_file_bytes + 1;
    let bytes = regular_file::read(path, limit_bytes, "give a PNG or JPEG file")?;
    let input = PictureInput::from_file(&bytes, &decoding, &limits);
    let input =
        input.map_err(|error| Error::File { file: path.to_owned(), problem: error.to_string() })?;
    Ok(Arc::new(input))
}
