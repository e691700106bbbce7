//! Renders a part of a file of any kind.
//!
//! The reply has no structured result, because that cannot contain images, and some clients show a model only that.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use super::blocking::Bounds;
use super::kind::{Kind, START};
use super::lines::{self, MAX_LINE, MAX_SHOWN};
use super::open::{failed, open};
use super::pdf;
use super::read::Part;
use crate::reply::{Answer, MAX_IMAGE, Problem, Reply, Result};
use crate::workspace::Workspace;

/// A rendered file.
pub(super) enum Rendered {
    /// The complete reply.
    Done(Reply),
    /// The bytes of a PDF document, which is read on another thread.
    Pdf(Vec<u8>),
}

/// Detects the kind of a file and renders a part of it.
pub(super) fn render(
    workspace: &Workspace,
    path: PathBuf,
    part: Part,
    bounds: &Bounds,
) -> Result<Rendered> {
    let (mut file, metadata) = open(&path)?;
    let size = metadata.len();
    let name = workspace.display(&path);
    let start = first_bytes(&path, &mut file)?;
    match Kind::of(&start) {
        Kind::Text => lines_reply(&path, &name, file, size, part, bounds).map(Rendered::Done),
        Kind::Image(media_type) => {
            let data = read_up_to(&path, file, MAX_IMAGE, || {
                format!(
                    "{name} is an image of {size} bytes, the maximum is {MAX_IMAGE}: create a smaller copy, for example with \
                     `convert {name} -resize 1600x1600 small.png` or Python's PIL, and read that"
                )
            })?;
            let caption = format!("{name}: {media_type}, {size} bytes");
            Ok(Rendered::Done(
                Reply::text(caption).with_image(data, media_type),
            ))
        }
        Kind::Pdf => {
            let bytes = read_up_to(&path, file, pdf::MAX_SIZE, || {
                format!(
                    "{name} is a PDF of {size} bytes, the maximum is {}: use a command (pdftotext)",
                    pdf::MAX_SIZE
                )
            })?;
            Ok(Rendered::Pdf(bytes))
        }
        Kind::Binary(what) => Err(Problem::new(format!(
            "{name} is not text but {what} ({size} bytes): inspect it with a command (file, xxd, unzip -l, strings)"
        ))),
    }
}

/// The first bytes of a file. Rewinds the file afterwards.
pub(super) fn first_bytes(path: &Path, file: &mut File) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(START as u64)
        .read_to_end(&mut start)
        .and_then(|_| file.rewind())
        .map_err(|error| failed(path, "read", &error))?;
    Ok(start)
}

/// Reads a whole file, up to a limit.
pub(super) fn read_up_to(
    path: &Path,
    file: File,
    limit: usize,
    too_large: impl FnOnce() -> String,
) -> Result<Vec<u8>> {
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
    if found.is_aborted {
        return Err(Problem::new(format!(
            "reading {name} up to line {} takes too long: use a command (sed -n, tail)",
            part.first
        )));
    }
    let last = part.first + found.line_count.saturating_sub(1);
    if found.line_count == 0 {
        let message = match found.total {
            Some(0) => format!("{name} is empty."),
            _ => format!(
                "{name} has only {} lines: line {} does not exist.",
                found.total.unwrap_or_default(),
                part.first
            ),
        };
        return Ok(Reply::text(message));
    }
    let is_end = found.total == Some(last);
    let mut text = found.text;
    if found.cut > 0 {
        text.push_str(&format!(
            "[{} of these lines were truncated to {MAX_LINE} characters]\n",
            found.cut
        ));
    }
    if !is_end {
        text.push_str(&format!(
            "[lines {} to {last} are shown; the file has {size} bytes: continue with offset={}]\n",
            part.first,
            last + 1
        ));
    }
    Ok(Reply::text(text))
}

/// The reply for pages of a PDF.
pub(super) fn pdf_reply(part: Part, pages_text: pdf::Text) -> Reply {
    let mut text = pages_text.text;
    if pages_text.is_cut {
        text.push_str(&format!(
            "\n[truncated: page {} has more than {MAX_SHOWN} characters]",
            pages_text.last
        ));
    }
    if pages_text.last < pages_text.pages {
        text.push_str(&format!(
            "\n[pages {} to {} of {} are shown: continue with offset={}]",
            part.first,
            pages_text.last,
            pages_text.pages,
            pages_text.last + 1
        ));
    }
    Reply::text(text)
}
