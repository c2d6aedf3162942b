//! The demo checkpoint that is part of the program.

use tandem_engine::weights::Files;

macro_rules! embed {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../demo/", $name)))),*]
    };
}

/// The demo checkpoint: the released layout, read through the loader that reads the full one.
pub(crate) const FILES: Files = Files::Embedded(embed! {
    "config.json"
    "tokenizer.json"
    "tokenizer_config.json"
    "model.safetensors.index.json"
    "model-00001-of-00005.safetensors"
    "model-00002-of-00005.safetensors"
    "model-00003-of-00005.safetensors"
    "model-00004-of-00005.safetensors"
    "model-00005-of-00005.safetensors"
});
