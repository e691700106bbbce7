//! The text of PDF documents.
//!
//! A document may be malicious. Streams are decompressed up to a limit, the parser runs on its own thread with a large stack, a panic
//! fails only that call, and the parser is abandoned when the time is up.

mod page;
mod text_writer;

use std::cell::Cell;

use lopdf::{Document, LoadOptions, Object, ObjectId};

use super::blocking::{Bounds, deep};
use super::lines::MAX_SHOWN;
use super::read::Part;
use crate::reply::{Problem, Result};

/// Maximum size of a document, in bytes.
pub(super) const MAX_SIZE: usize = 32 * 1024 * 1024;
/// Maximum decompressed size of an object stream or a font table.
const MAX_STREAM: usize = 8 * 1024 * 1024;
/// Maximum decompressed size of all object streams together.
const MAX_STREAMS: usize = 64 * 1024 * 1024;

thread_local! {
    /// Remaining decompressed size of object streams in the document that this thread reads.
    static REMAINING_BYTES: Cell<usize> = const { Cell::new(MAX_STREAMS) };
}

/// The text of some pages.
#[derive(Debug)]
pub(super) struct Text {
    /// The text, with a heading for each page.
    pub(super) text: String,
    /// Number of the last page in `text`.
    pub(super) last: u64,
    /// Number of pages of the document.
    pub(super) pages: u64,
    /// Whether a single page was too long.
    pub(super) is_cut: bool,
}

/// Extracts the text of pages.
pub(super) async fn text(bytes: Vec<u8>, part: Part, bounds: &Bounds) -> Result<Text> {
    let own_bounds = bounds.clone();
    deep(bounds, move || pages(&bytes, part, &own_bounds)).await
}

fn pages(bytes: &[u8], part: Part, bounds: &Bounds) -> Result<Text> {
    let options = LoadOptions {
        filter: Some(within_bounds),
        max_decompressed_size: Some(MAX_STREAM),
        ..LoadOptions::default()
    };
    REMAINING_BYTES.set(MAX_STREAMS);
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| {
        Problem::new(format!(
            "the PDF cannot be read: {error}; try a command (pdftotext, qpdf)"
        ))
    })?;
    if REMAINING_BYTES.get() == 0 {
        return Err(Problem::new(
            "the decompressed PDF is too large: use a command (pdftotext)",
        ));
    }
    if document.is_encrypted() && document.encryption_state.is_none() {
        return Err(Problem::new(
            "the PDF needs a password: remove it with a command (qpdf --decrypt) first",
        ));
    }
    let pages = document.get_pages();
    let mut found = Text {
        text: String::new(),
        last: 0,
        pages: pages.len() as u64,
        is_cut: false,
    };
    let mut has_text = false;
    let first = usize::try_from(part.first - 1).unwrap_or(usize::MAX);
    let limit = usize::try_from(part.limit).unwrap_or(usize::MAX);
    for (number, page) in pages.into_iter().skip(first).take(limit) {
        let text = page::text(&document, page, bounds)
            .unwrap_or_else(|why| format!("[this page cannot be read: {why}]"));
        if bounds.are_over() {
            return Err(Problem::new(
                "reading the PDF takes too long: use a command (pdftotext)",
            ));
        }
        has_text |= !text.trim().is_empty();
        let text = format!("--- page {number} ---\n{}\n", text.trim_end());
        let length = found.text.chars().count() + text.chars().count();
        if length > MAX_SHOWN && found.last > 0 {
            break;
        }
        found.last = number.into();
        found.text.push_str(&text);
        if length > MAX_SHOWN {
            found.text = found.text.chars().take(MAX_SHOWN).collect();
            found.is_cut = true;
            break;
        }
    }
    if found.last == 0 {
        return Err(Problem::new(format!(
            "the PDF has {} pages: page {} does not exist",
            found.pages, part.first
        )));
    }
    if !has_text {
        found.text.push_str(
            "[these pages contain no text, they may be scanned: convert them to images with a command (pdftoppm -png) and read those]",
        );
    }
    Ok(found)
}

/// Drops object streams that exceed the limit. The parser calls this for every object before it decompresses it.
fn within_bounds(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    let Ok(stream) = object.as_stream() else {
        return Some((id, object.clone()));
    };
    if stream.dict.has_type(b"ObjStm") {
        let limit = MAX_STREAM.min(REMAINING_BYTES.get());
        // Also none when the size is exactly the limit.
        let unpacked = stream.get_plain_content_with_limit(limit).ok();
        let size = unpacked.as_ref().map_or(limit, Vec::len);
        REMAINING_BYTES.set(REMAINING_BYTES.get() - size.min(limit));
        unpacked?;
    }
    // The parser takes only objects of object streams from here, and those are never streams.
    Some((id, Object::Null))
}
