//! The engine's error.

use std::{fmt, io};

use crate::text::TextError;

/// What an engine call answers.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the engine refused or failed. Every message is one line that names the thing and the
/// remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file.
    #[error("cannot {action} {path}: {source}{remedy}", remedy = path_remedy(source))]
    Io {
        /// What was attempted, as a verb: `open`, `read`.
        action: &'static str,
        /// The file or folder.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A model configuration that this model cannot have.
    #[error("config: {key}{at}: {problem}", at = AtLayer(*layer))]
    Config {
        /// The key in the spelling of the file.
        key: String,
        /// The layer concerned, zero-based, draft stages after the backbone.
        layer: Option<usize>,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A file whose content is not what its name promises.
    #[error("{file}: {problem}")]
    File {
        /// The file's name.
        file: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A tensor that its file describes wrongly, or a read outside it.
    #[error("{file}: tensor {tensor}: {problem}")]
    Tensor {
        /// The file's name.
        file: String,
        /// The tensor's name, made printable.
        tensor: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Files that do not make up one checkpoint of the configured model.
    #[error("checkpoint: {problem}")]
    Checkpoint {
        /// What is missing, doubled or misshapen, naming the first few.
        problem: String,
    },
    /// An option or argument that cannot be honoured.
    #[error("{argument}: {problem}")]
    Argument {
        /// The option as the caller spells it.
        argument: String,
        /// What is wrong and what would work.
        problem: String,
    },
    /// The model does not fit the devices; the message carries the sums.
    #[error("does not fit: {problem}")]
    DoesNotFit {
        /// Bytes needed, bytes at hand, what is short and what would fit.
        problem: String,
    },
    /// A tokenizer, a text or a conversation that cannot be used.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A device refused or failed.
    #[error(transparent)]
    Device(#[from] tandem_hal::Error),
    /// A broken invariant of the engine itself.
    #[error("internal error: {invariant}; please report it")]
    Internal {
        /// The invariant that did not hold.
        invariant: String,
    },
}

impl Error {
    /// Whether other input or options would cure it; `false` for faults of the engine or machine.
    pub fn is_caller_mistake(&self) -> bool {
        match self {
            Self::Io { source, .. } => !path_remedy(source).is_empty(),
            Self::Internal { .. } | Self::Device(_) => false,
            _ => true,
        }
    }

    /// The exit code of a command that ends with this error: 2 for input the caller can correct,
    /// wrong paths included, 3 for a model that does not fit, 4 when the system fails to read or
    /// write, 5 for devices, 70 for internal errors.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::DoesNotFit { .. } => 3,
            _ if self.is_caller_mistake() => 2,
            Self::Device(_) => 5,
            Self::Internal { .. } => 70,
            _ => 4,
        }
    }

    /// A configuration error that concerns the model as a whole.
    pub(crate) fn config(key: &str, problem: impl Into<String>) -> Self {
        Self::Config { key: printable(key), layer: None, problem: problem.into() }
    }

    /// A configuration error at one layer.
    pub(crate) fn config_at(key: &str, layer: usize, problem: impl Into<String>) -> Self {
        Self::Config { key: printable(key), layer: Some(layer), problem: problem.into() }
    }

    /// A file error.
    pub(crate) fn file(file: &str, problem: impl Into<String>) -> Self {
        Self::File { file: printable(file), problem: problem.into() }
    }

    /// A tensor error.
    pub(crate) fn tensor(file: &str, tensor: &str, problem: impl Into<String>) -> Self {
        Self::Tensor { file: printable(file), tensor: printable(tensor), problem: problem.into() }
    }

    /// A refusal of an option.
    pub(crate) fn argument(argument: &str, problem: impl Into<String>) -> Self {
        Self::Argument { argument: argument.into(), problem: problem.into() }
    }

    /// A refusal of a set of files.
    pub(crate) fn checkpoint(problem: impl fmt::Display) -> Self {
        let remedy = "take config.json and every shard from one release";
        Self::Checkpoint { problem: format!("{problem}; {remedy}") }
    }
}

/// What the caller can do when the system refuses a path; nothing when it fails to read or write.
pub(crate) fn path_remedy(source: &io::Error) -> &'static str {
    use io::ErrorKind::{InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    match source.kind() {
        NotFound | IsADirectory | NotADirectory | InvalidFilename => "; check the path",
        PermissionDenied => "; check its permissions",
        _ => "",
    }
}

/// A name from a file, fit for a one-line message: control characters escaped, cut at 120
/// characters.
pub(crate) fn printable(name: &str) -> String {
    const LIMIT: usize = 120;
    let mut text: String = name.chars().take(LIMIT).flat_map(char::escape_debug).collect();
    if name.chars().nth(LIMIT).is_some() {
        text.push_str("...");
    }
    text
}

/// The first few of a list of findings, and how many more there are.
pub(crate) fn first_few(findings: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = findings.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match findings.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Prints ` (layer N)`, or nothing.
struct AtLayer(Option<usize>);

impl fmt::Display for AtLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(layer) => write!(f, " (layer {layer})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_and_name_the_layer() {
        let error = Error::config_at("compress_ratios", 8, "ratio 4 is not one of 0, 1, 2");
        assert_eq!(
            error.to_string(),
            "config: compress_ratios (layer 8): ratio 4 is not one of 0, 1, 2"
        );
        let hostile = Error::tensor("a.safetensors", "x\ny\u{7}", "unknown dtype");
        assert_eq!(hostile.to_string().lines().count(), 1);
    }

    #[test]
    fn exit_codes_tell_mistakes_from_faults() {
        assert_eq!(Error::argument("--draft", "7 exceeds 5").exit_code(), 2);
        let io = |kind: io::ErrorKind| Error::Io {
            action: "open",
            path: "a.json".into(),
            source: kind.into(),
        };
        assert_eq!(io(io::ErrorKind::NotFound).exit_code(), 2);
        assert!(io(io::ErrorKind::NotFound).to_string().ends_with("; check the path"));
        assert_eq!(io(io::ErrorKind::UnexpectedEof).exit_code(), 4);
        let fault = Error::Internal { invariant: "pages are conserved".into() };
        assert_eq!(fault.exit_code(), 70);
        assert!(!fault.is_caller_mistake());
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..6).map(|i| format!("t{i}")).collect();
        assert_eq!(first_few(&names), "t0, t1, t2, t3 and 2 more");
        assert_eq!(first_few(&names[..2]), "t0, t1");
    }
}
