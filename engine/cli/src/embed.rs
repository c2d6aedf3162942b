//! `tandem embed`: texts into vectors.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tandem_engine::embed::{Embedded, Embedder};
use tandem_engine::text::Prompt;
use tandem_engine::{Error, Result, regular_file};

use crate::arguments::Common;
use crate::console;
use crate::limits::Limits;
use crate::progress::Progress;
use crate::ready::{Drafts, Pictures, Ready, Work};

/// What to embed. The vector of a text is the mean of the final normed hidden states of its tokens,
/// at unit length; it does not depend on the other texts.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Texts to embed
    #[arg(required_unless_present = "input")]
    text: Vec<String>,
    /// Embed the lines of a file instead
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    input: Option<String>,
    /// What its lines are; if left out, objects in a file whose name ends in .jsonl, texts else
    #[arg(long, value_name = "FORM", requires = "input")]
    input_form: Option<Form>,
    /// Where the vectors go, one a line, in the order of the texts, instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<String>,
    /// Texts that run at once; their vectors are the same bits whatever it is
    #[arg(long, value_name = "TEXTS", default_value_t = 8)]
    max_num_seqs: u64,
    #[command(flatten)]
    limits: Limits,
}

/// What the lines of a file are.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// Each a text.
    Lines,
    /// Each an object: {"text": …}, and "id" if it shall be repeated beside the vector.
    Jsonl,
}

/// A text and what it is called.
#[derive(Debug, PartialEq)]
struct Item {
    /// Where it is from, for what is said of it.
    place: String,
    id: Option<Value>,
    text: String,
}

/// Writes the vector of each text.
///
/// # Errors
/// Whatever is wrong with the arguments, the texts, the checkpoint or the devices.
pub(crate) fn run(common: &Common, options: &Options) -> Result<ExitCode> {
    let items = items(options)?;
    let work = Work {
        sequences: options.max_num_seqs,
        drafts: Drafts::Never,
        pictures: Pictures::No,
        alike: false,
    };
    let ready = Ready::load(common, &options.limits, work)?;
    let texts = items.iter().map(|item| {
        let of = |error: Error| in_place(error, &item.place);
        Ok(ready.encode(&Prompt::continuation(0, &item.text)).map_err(of)?.ids)
    });
    // All of them before anything is computed: a text that is refused costs no work.
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let mut embedder = Embedder::new(ready.engine);
    for (ids, item) in texts.into_iter().zip(&items) {
        embedder.add(ids).map_err(|error| in_place(error, &item.place))?;
    }
    let mut output = Output::open(options.output.as_deref())?;
    let mut progress = Progress::counting("embedding texts");
    let total = items.len() as u64;
    let (mut done, mut next) = (Vec::new(), 0);
    while embedder.pending() > 0 {
        done.extend(embedder.step()?);
        done.sort_by_key(|embedded: &Embedded| embedded.index);
        let ready = done.iter().zip(next..).take_while(|(a, at)| a.index == *at).count();
        for embedded in done.drain(..ready) {
            output.write(&line(&items[next as usize], embedded)?)?;
            next += 1;
        }
        progress.show(total - embedder.pending(), total);
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn line(item: &Item, embedded: Embedded) -> Result<String> {
    let invariant = || format!("the model's states for {} are numbers", item.place);
    let vector = embedded.vector.ok_or_else(|| Error::Internal { invariant: invariant() })?;
    let mut line = json!({ "index": embedded.index });
    if let Some(id) = &item.id {
        line["id"] = id.clone();
    }
    line["tokens"] = embedded.tokens.into();
    line["embedding"] = vector.into();
    Ok(line.to_string())
}

fn in_place(error: Error, place: &str) -> Error {
    match error {
        Error::Argument { problem, .. } => Error::Argument { argument: place.to_owned(), problem },
        error => error,
    }
}

/// The texts in order.
fn items(options: &Options) -> Result<Vec<Item>> {
    let Some(path) = &options.input else {
        let item = |(text, at): (&String, u64)| Item {
            place: format!("text {at}"),
            id: None,
            text: text.clone(),
        };
        return Ok(options.text.iter().zip(1..).map(item).collect());
    };
    let by_name = if path.ends_with(".jsonl") { Form::Jsonl } else { Form::Lines };
    let form = options.input_form.unwrap_or(by_name);
    let bytes = regular_file::read(path, u64::MAX, "give a file of texts, one a line")?;
    let refuse = |problem: String| Error::File { file: path.clone(), problem };
    let mut items = Vec::new();
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1_u64..) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let refuse = |problem: String| refuse(format!("line {number}: {problem}"));
        let line = str::from_utf8(line).map_err(|_| refuse("not UTF-8".into()))?;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (id, text) = match form {
            Form::Lines => (None, line.to_owned()),
            Form::Jsonl => parse(line).map_err(refuse)?,
        };
        items.push(Item { place: format!("{path}: line {number}"), id, text });
    }
    if items.is_empty() {
        return Err(refuse("it has no text; write one a line".into()));
    }
    Ok(items)
}

/// The id and the text of a line of JSON.
fn parse(line: &str) -> std::result::Result<(Option<Value>, String), String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let fields = value.as_object().ok_or("not an object; write {\"text\": …}")?;
    if let Some(key) = fields.keys().find(|key| !["id", "text"].contains(&key.as_str())) {
        return Err(format!("{key:?}: unknown field; \"text\" and \"id\" are known"));
    }
    let text = fields.get("text").and_then(Value::as_str);
    let text = text.ok_or("text: must be a text")?.to_owned();
    match fields.get("id") {
        None => Ok((None, text)),
        Some(id) if id.is_string() || id.is_number() => Ok((Some(id.clone()), text)),
        Some(_) => Err("id: must be a text or a number".to_owned()),
    }
}

/// Where vectors go.
enum Output {
    Console,
    File(String, BufWriter<File>),
}

impl Output {
    fn open(path: Option<&str>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::Console) };
        let file = File::create(path).map_err(|source| failed("create", path, source))?;
        Ok(Self::File(path.to_owned(), BufWriter::new(file)))
    }

    fn write(&mut self, line: &str) -> Result<()> {
        match self {
            Self::Console => console::print(format_args!("{line}\n")),
            Self::File(path, file) => {
                writeln!(file, "{line}").map_err(|source| failed("write", path, source))
            }
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Console => Ok(()),
            Self::File(path, mut file) => {
                file.flush().map_err(|source| failed("write", &path, source))
            }
        }
    }
}

fn failed(action: &'static str, path: &str, source: io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_strictly() {
        let plain = parse(r#"{"text": "Call me"}"#).unwrap();
        assert_eq!(plain, (None, "Call me".to_owned()));
        let named = parse(r#"{"id": 7, "text": ""}"#).unwrap();
        assert_eq!(named, (Some(json!(7)), String::new()));
        for line in ["", "[]", "{}", r#"{"text": 1}"#, r#"{"text": "a", "id": []}"#] {
            assert_eq!(parse(line).unwrap_err().lines().count(), 1, "{line}");
        }
        let unknown = parse(r#"{"text": "a", "model": "b"}"#).unwrap_err();
        assert!(unknown.starts_with("\"model\""), "{unknown}");
    }
}
