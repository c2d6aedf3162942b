//! `tandem generate --input FILE --output FILE`: a file of requests, one a line, and one of their answers.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};

use serde_json::Value;
use tandem_engine::serve::{BatchRequest, answer_batch};
use tandem_engine::{Error, Result, regular_file};

use crate::arguments::Common;
use crate::limits::Limits;
use crate::progress::Progress;
use crate::served::{Loading, Served};

/// Answers the requests of `input` that `output` does not answer yet, and appends what they come to.
///
/// # Errors
/// A file that cannot be read or written, a line that is no request, and whatever is wrong with the checkpoint or the
/// devices; all lines that are in `output` by then stay.
pub(crate) fn run(
    common: &Common,
    limits: &Limits,
    sequences: u64,
    (input, output): (&str, &str),
) -> Result<()> {
    let requests = requests(input)?;
    let (mut file, answered) = open(output)?;
    let total = requests.len() as u64;
    let left: Vec<_> =
        requests.into_iter().filter(|request| !answered.contains(request.custom_id())).collect();
    if left.is_empty() {
        return Ok(());
    }
    let local =
        Served::load(common, limits, Loading { sequences, reopens: false, prefixes: None }, None)?
            .local()?;
    let mut progress = Progress::counting("answering requests");
    let mut done = total - left.len() as u64;
    answer_batch(&local, left, |line| {
        let written = file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|source| failed("write", output, source))?;
        done += 1;
        progress.show(done, total);
        Ok(())
    })
}

fn failed(action: &'static str, path: &str, source: std::io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}

/// The requests of a file, each with an id of its own.
fn requests(path: &str) -> Result<Vec<BatchRequest>> {
    let bytes = regular_file::read(path, u64::MAX, "give a file of requests, one a line")?;
    let mut ids = HashSet::new();
    let mut requests = vec![];
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1_u64..) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let refuse = |problem: String| Error::File {
            file: path.to_owned(),
            problem: format!("line {number}: {problem}"),
        };
        let line = str::from_utf8(line).map_err(|_| refuse("not UTF-8".to_owned()))?;
        let request = BatchRequest::parse(line).map_err(refuse)?;
        if !ids.insert(request.custom_id().to_owned()) {
            let id = request.custom_id();
            return Err(refuse(format!("custom_id: {id:?} was there before; give each its own")));
        }
        requests.push(request);
    }
    Ok(requests)
}

/// The file of answers, at its end, and the ids of the requests that it answers. A last line that was not written whole is
/// cut off.
fn open(path: &str) -> Result<(File, HashSet<String>)> {
    let file = OpenOptions::new().create(true).read(true).append(true).open(path);
    let mut file = file.map_err(|source| failed("open", path, source))?;
    let mut bytes = vec![];
    let read = file.read_to_end(&mut bytes);
    read.map_err(|source| failed("read", path, source))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut answered = HashSet::new();
    for (line, number) in bytes[..whole].split(|byte| *byte == b'\n').zip(1_u64..) {
        if line.is_empty() {
            continue;
        }
        let id = serde_json::from_slice(line).ok().and_then(|line: Value| {
            line["response"]["status_code"].as_u64()?;
            Some(line["custom_id"].as_str()?.to_owned())
        });
        let problem = format!("line {number}: not the answer of a request; name another file");
        let id = id.ok_or_else(|| Error::File { file: path.to_owned(), problem })?;
        answered.insert(id);
    }
    if whole == 0 && !bytes.is_empty() && !bytes.starts_with(b"{\"id\":\"batch_req_") {
        let problem = "not a file of answers; name another".to_owned();
        return Err(Error::File { file: path.to_owned(), problem });
    }
    match file.set_len(whole as u64) {
        // A device or a pipe has no end to cut.
        Err(source) if source.kind() != ErrorKind::InvalidInput => {
            Err(failed("write", path, source))
        }
        _ => Ok((file, answered)),
    }
}
