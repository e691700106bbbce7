//! The text of PDF documents.
//!
//! A document may be made to harm whoever reads it. Streams are unpacked up to a limit, the work has a thread of its
//! own with much stack, a panic ends only that, and when the time is up nobody waits for it any more.

mod page;
mod pen;

use std::cell::Cell;

use lopdf::{Document, LoadOptions, Object, ObjectId};

use super::blocking::{Bounds, deep};
use super::lines::MAX_SHOWN;
use super::read::Part;
use crate::reply::Problem;

/// Largest document.
pub(super) const MAX_SIZE: usize = 32 * 1024 * 1024;
/// What one stream of objects, or a font's table, may unpack to.
const MAX_STREAM: usize = 8 * 1024 * 1024;
/// What all streams of objects may unpack to together.
const MAX_STREAMS: usize = 64 * 1024 * 1024;

thread_local! {
    /// What streams of objects may still unpack to in the document that this thread reads.
    static LEFT: Cell<usize> = const { Cell::new(MAX_STREAMS) };
}

/// The text of some pages.
#[derive(Debug)]
pub(super) struct Text {
    /// With a heading for each page.
    pub(super) text: String,
    /// The number of the last page in it.
    pub(super) last: u64,
    /// How many pages the document has.
    pub(super) pages: u64,
    /// That page alone was too much.
    pub(super) is_cut: bool,
}

/// Reads pages.
pub(super) async fn text(bytes: Vec<u8>, part: Part, bounds: &Bounds) -> Result<Text, Problem> {
    let own_bounds = bounds.clone();
    deep(bounds, move || pages(&bytes, part, &own_bounds)).await
}

fn pages(bytes: &[u8], part: Part, bounds: &Bounds) -> Result<Text, Problem> {
    let options = LoadOptions {
        filter: Some(within_bounds),
        max_decompressed_size: Some(MAX_STREAM),
        ..LoadOptions::default()
    };
    LEFT.set(MAX_STREAMS);
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| {
        Problem::new(format!(
            "the PDF cannot be read: {error}; try a command (pdftotext, qpdf)"
        ))
    })?;
    if LEFT.get() == 0 {
        return Err(Problem::new(
            "the PDF unpacks to too much: use a command (pdftotext) for it",
        ));
    }
    if document.is_encrypted() && document.encryption_state.is_none() {
        return Err(Problem::new(
            "the PDF needs a password: take it off with a command (qpdf --decrypt) first",
        ));
    }
    let pages = document.get_pages();
    let mut found = Text {
        text: String::new(),
        last: 0,
        pages: pages.len() as u64,
        is_cut: false,
    };
    let mut has_words = false;
    let first = usize::try_from(part.first - 1).unwrap_or(usize::MAX);
    let limit = usize::try_from(part.limit).unwrap_or(usize::MAX);
    for (number, page) in pages.into_iter().skip(first).take(limit) {
        let text = page::text(&document, page, bounds)
            .unwrap_or_else(|why| format!("[this page cannot be read: {why}]"));
        if bounds.are_over() {
            return Err(Problem::new(
                "the PDF takes too long to be read: use a command (pdftotext) for it",
            ));
        }
        has_words |= !text.trim().is_empty();
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
            "the PDF has {} pages: there is no page {}",
            found.pages, part.first
        )));
    }
    if !has_words {
        found.text.push_str(
            "[no text is in these pages, they may be scanned: make images of them with a command (pdftoppm -png) and \
             read those]",
        );
    }
    Ok(found)
}

/// Takes every object but streams of objects that are too much. It is asked for every object before it is unpacked.
fn within_bounds(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    let Ok(stream) = object.as_stream() else {
        return Some((id, object.clone()));
    };
    if stream.dict.has_type(b"ObjStm") {
        let most = MAX_STREAM.min(LEFT.get());
        // None is left when it is exactly what was allowed, too.
        let unpacked = stream.get_plain_content_with_limit(most).ok();
        let size = unpacked.as_ref().map_or(most, Vec::len);
        LEFT.set(LEFT.get() - size.min(most));
        unpacked?;
    }
    // Only what comes out of a stream of objects is taken from here, and no stream does.
    Some((id, Object::Null))
}
