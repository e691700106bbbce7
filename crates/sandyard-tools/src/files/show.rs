//! Showing a part of whatever a file is.
//!
//! There is no structured part: a picture has no place in one, and clients that find one show a model nothing else.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use super::blocking::Bounds;
use super::kind::{Kind, START};
use super::lines::{self, MAX_LINE, MAX_SHOWN};
use super::open::{failed, open};
use super::pdf;
use super::read::Part;
use crate::reply::{Answer, MAX_IMAGE, Problem, Reply};
use crate::workspace::Workspace;

/// What a look at a file has brought.
pub(super) enum Looked {
    /// All there is to say.
    Done(Reply),
    /// A PDF document that is still to be read: all of it.
    Pdf(Vec<u8>),
}

/// Finds out what a file is, and shows a part of it.
pub(super) fn look(
    workspace: &Workspace,
    path: PathBuf,
    part: Part,
    bounds: &Bounds,
) -> Result<Looked, Problem> {
    let (mut file, metadata) = open(&path)?;
    let size = metadata.len();
    let name = workspace.shown(&path);
    let start = start(&path, &mut file)?;
    match Kind::of(&start) {
        Kind::Text => lines_reply(&path, &name, file, size, part, bounds).map(Looked::Done),
        Kind::Image(media_type) => {
            let data = up_to(&path, file, MAX_IMAGE, || {
                format!(
                    "{name} is an image of {size} bytes, and at most {MAX_IMAGE} can be shown: make a smaller copy, for \
                     example with `convert {name} -resize 1600x1600 small.png` or Python's PIL, and read that"
                )
            })?;
            let words = format!("{name}: {media_type}, {size} bytes");
            Ok(Looked::Done(
                Reply::text(words).with_image(data, media_type),
            ))
        }
        Kind::Pdf => {
            let bytes = up_to(&path, file, pdf::MAX_SIZE, || {
                format!(
                    "{name} is a PDF of {size} bytes, and at most {} are read here: use a command (pdftotext) for it",
                    pdf::MAX_SIZE
                )
            })?;
            Ok(Looked::Pdf(bytes))
        }
        Kind::Binary(what) => Err(Problem::new(format!(
            "{name} is not text but {what} ({size} bytes): look at it with a command (file, xxd, unzip -l, strings)"
        ))),
    }
}

/// How a file begins; it is at its start again afterwards.
pub(super) fn start(path: &Path, file: &mut File) -> Result<Vec<u8>, Problem> {
    let mut start = Vec::new();
    file.take(START as u64)
        .read_to_end(&mut start)
        .and_then(|_| file.rewind())
        .map_err(|error| failed(path, "read", &error))?;
    Ok(start)
}

/// A whole file up to a limit.
pub(super) fn up_to(
    path: &Path,
    file: File,
    limit: usize,
    too_large: impl FnOnce() -> String,
) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(path, "read", &error))?;
    if bytes.len() > limit {
        return Err(Problem::new(too_large()));
    }
    Ok(bytes)
}

fn lines_reply(
    path: &Path,
    name: &str,
    file: File,
    size: u64,
    part: Part,
    bounds: &Bounds,
) -> Answer {
    let source = BufReader::with_capacity(64 * 1024, file);
    let found = lines::part(source, part.first, part.limit, bounds)
        .map_err(|error| failed(path, "read", &error))?;
    if found.is_given_up {
        return Err(Problem::new(format!(
            "{name} takes too long to be read up to line {}: use a command (sed -n, tail) for it",
            part.first
        )));
    }
    let last = part.first + found.shown.saturating_sub(1);
    if found.shown == 0 {
        let words = match found.total {
            Some(0) => format!("{name} is empty."),
            _ => format!(
                "{name} has only {} lines: there is no line {}.",
                found.total.unwrap_or_default(),
                part.first
            ),
        };
        return Ok(Reply::text(words));
    }
    let is_end = found.total == Some(last);
    let mut text = found.text;
    if found.cut > 0 {
        text.push_str(&format!(
            "[{} of these lines were cut at {MAX_LINE} characters]\n",
            found.cut
        ));
    }
    if !is_end {
        text.push_str(&format!(
            "[lines {} to {last} are shown, {size} bytes in all: go on with offset={}]\n",
            part.first,
            last + 1
        ));
    }
    Ok(Reply::text(text))
}

/// What is said about pages.
pub(super) fn pdf_reply(part: Part, found: pdf::Text) -> Reply {
    let mut text = found.text;
    if found.is_cut {
        text.push_str(&format!(
            "\n[cut: page {} has more than {MAX_SHOWN} characters]",
            found.last
        ));
    }
    if found.last < found.pages {
        text.push_str(&format!(
            "\n[pages {} to {} of {} are shown: go on with offset={}]",
            part.first,
            found.last,
            found.pages,
            found.last + 1
        ));
    }
    Reply::text(text)
}
