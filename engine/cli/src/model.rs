//! Which model: a checkpoint's folder, the built-in demo, or a configuration alone.

use std::path::Path;

use tandem_engine::model::v41::Config;
use tandem_engine::text::Tokenizer;
use tandem_engine::weights::Files;
use tandem_engine::{Error, Result};

use crate::demo;

/// The name of the built-in checkpoint.
const DEMO: &str = "demo";
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
/// The release's file has three kilobytes.
const CONFIG_LIMIT_BYTES: u64 = 1 << 20;
/// The release's file has under ten megabytes.
const TOKENIZER_LIMIT_BYTES: u64 = 100_000_000;

/// A checkpoint that can be run.
#[derive(Debug)]
pub(crate) struct Source {
    /// What to call it.
    pub(crate) name: String,
    /// Its files.
    pub(crate) files: Files,
    /// Its configuration.
    pub(crate) config: Config,
}

impl Source {
    /// The checkpoint that `--model` names, or the demo.
    ///
    /// # Errors
    /// A name that is no folder, or a folder without a configuration of this model.
    pub(crate) fn named(model: Option<&str>) -> Result<Self> {
        let (name, files) = match model {
            None | Some(DEMO) => (DEMO.to_owned(), demo::FILES),
            Some(folder) if Path::new(folder).is_dir() => {
                let name = Path::new(folder).file_name().unwrap_or_default();
                (name.to_string_lossy().into_owned(), Files::folder(folder))
            }
            Some(name) if Config::NAMES.contains(&name) => {
                let problem = format!("{name} is a configuration without weights, for plan alone");
                return Err(refuse(&problem));
            }
            Some(other) => return Err(refuse(&format!("there is no folder {other:?}"))),
        };
        let config = read_config(&files, CONFIG)?;
        Ok(Self { name, files, config })
    }

    /// Whether it is the built-in demo.
    pub(crate) fn is_demo(&self) -> bool {
        matches!(self.files, Files::Embedded(_))
    }

    /// The files besides the tensors that decide what is computed.
    ///
    /// # Errors
    /// A file that is missing or too long.
    pub(crate) fn texts(&self) -> Result<Vec<Vec<u8>>> {
        let files = [(CONFIG, CONFIG_LIMIT_BYTES), (TOKENIZER, TOKENIZER_LIMIT_BYTES)];
        files.into_iter().map(|(name, limit_bytes)| self.files.read(name, limit_bytes)).collect()
    }

    /// The tokenizer, whose ids all have an embedding row.
    ///
    /// # Errors
    /// A file that is missing or no tokenizer, or one of another model.
    pub(crate) fn tokenizer(&self) -> Result<Tokenizer> {
        let bytes = self.files.read(TOKENIZER, TOKENIZER_LIMIT_BYTES)?;
        let tokenizer = Tokenizer::from_bytes(&bytes)?;
        tokenizer.check_vocabulary_size(self.config.vocab_size)?;
        Ok(tokenizer)
    }
}

/// The configuration that `--model` names: a folder, a file, a built-in name, or the demo.
///
/// # Errors
/// A name that is none of these, or a file that is not a configuration of this model.
pub(crate) fn config(model: Option<&str>) -> Result<Config> {
    let Some(name) = model.filter(|name| *name != DEMO) else {
        return read_config(&demo::FILES, CONFIG);
    };
    let path = Path::new(name);
    match (path.parent(), path.file_name().and_then(|file| file.to_str())) {
        (Some(folder), Some(file)) if path.is_file() => {
            let folder = if folder == Path::new("") { Path::new(".") } else { folder };
            read_config(&Files::folder(folder), file)
        }
        _ if path.is_dir() => read_config(&Files::folder(path), CONFIG),
        _ if Config::NAMES.contains(&name) => Config::named(name),
        _ => {
            let known = Config::NAMES.join(", ");
            let problem =
                format!("{name:?} is no folder, no config.json and no built-in name ({known})");
            Err(refuse(&problem))
        }
    }
}

fn read_config(files: &Files, name: &str) -> Result<Config> {
    Config::from_json(&files.read(name, CONFIG_LIMIT_BYTES)?)
}

fn refuse(problem: &str) -> Error {
    Error::Argument {
        argument: "--model".into(),
        problem: format!(
            "{problem}; give the folder of a checkpoint, or leave it out for the built-in demo"
        ),
    }
}
