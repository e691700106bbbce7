//! One page: what is drawn on it, with the forms that are drawn there as a whole.
//!
//! A form may draw other forms, and itself. So there is a limit on how deep, how many, and how much in all.

use std::collections::HashMap;
use std::rc::Rc;

use lopdf::content::Content;
use lopdf::{Dictionary, Document, Encoding, Object, ObjectId, Stream};

use super::MAX_STREAM;
use super::text_writer::{Font, TextWriter, number};
use crate::files::blocking::Bounds;
use crate::files::lines::MAX_SHOWN;

/// What the drawing of one page may unpack to, and that of all forms on it.
const MAX_PAGE: usize = 4 * 1024 * 1024;
/// Deepest form in a form.
const MAX_DEPTH: usize = 8;
/// Most forms of one page, each as often as it is drawn.
const MAX_FORMS: usize = 500;

/// The text of a page.
pub(super) fn text(document: &Document, page: ObjectId, bounds: &Bounds) -> lopdf::Result<String> {
    let content = document.get_page_content_with_limit(page, MAX_PAGE)?;
    let (own, others) = document.get_page_resources(page)?;
    let others = others
        .into_iter()
        .filter_map(|id| document.get_dictionary(id).ok());
    let resources: Resources<'_> = own.into_iter().chain(others).collect();
    let mut reader = Reader {
        document,
        bounds,
        writer: TextWriter::default(),
        encodings: HashMap::new(),
        forms: 0,
        remaining_bytes: MAX_PAGE,
        is_short: false,
    };
    reader.draw(&content, &resources, 0)?;
    let mut text = reader.writer.text;
    if reader.is_short {
        text.push_str(
            "\n[some of this page was left out: its forms are too many, too deep or too large]",
        );
    }
    Ok(text)
}

/// Dictionaries that say what names mean, nearest first.
type Resources<'a> = Vec<&'a Dictionary>;

struct Reader<'a> {
    document: &'a Document,
    bounds: &'a Bounds,
    writer: TextWriter<'a>,
    /// What the codes of fonts mean, by where the font is in memory.
    encodings: HashMap<*const Dictionary, Option<Rc<Encoding<'a>>>>,
    /// How many forms have been drawn.
    forms: usize,
    /// What forms may still unpack to.
    remaining_bytes: usize,
    /// Whether a form was left out.
    is_short: bool,
}

impl<'a> Reader<'a> {
    fn draw(
        &mut self,
        content: &[u8],
        resources: &Resources<'a>,
        depth: usize,
    ) -> lopdf::Result<()> {
        let content = Content::decode(content)?;
        for (count, operation) in content.operations.iter().enumerate() {
            if self.writer.text.len() > MAX_SHOWN * 8
                || (count % 1024 == 0 && self.bounds.are_over())
            {
                break;
            }
            let name = || operation.operands.first().and_then(|it| it.as_name().ok());
            match operation.operator.as_str() {
                "Tf" => {
                    let encoding = name().and_then(|name| self.encoding(resources, name));
                    let size = number(&operation.operands, 1);
                    self.writer.font = Font { encoding, size };
                }
                "Do" => {
                    let form = name().and_then(|name| self.form(resources, name));
                    if let Some(form) = form {
                        self.draw_form(form, resources, depth + 1);
                    }
                }
                _ => self.writer.process(operation),
            }
        }
        Ok(())
    }

    /// Draws a form; one that cannot be read says nothing.
    fn draw_form(&mut self, form: &'a Stream, around: &Resources<'a>, depth: usize) {
        self.forms += 1;
        let may_go_on = depth <= MAX_DEPTH && self.forms <= MAX_FORMS && !self.bounds.are_over();
        let content = may_go_on.then(|| form.get_plain_content_with_limit(self.remaining_bytes));
        let Some(Ok(content)) = content else {
            self.is_short = true;
            return;
        };
        self.remaining_bytes -= content.len().min(self.remaining_bytes);
        let own = form.dict.get_deref(b"Resources", self.document);
        let own = own.and_then(Object::as_dict).ok();
        let resources = own.map_or_else(|| around.clone(), |own| vec![own]);
        // It has places of its own, and what it sets ends with it.
        let font = self.writer.font.clone();
        self.writer.new_line();
        let _ = self.draw(&content, &resources, depth);
        self.writer.new_line();
        self.writer.font = font;
    }

    fn form(&self, resources: &Resources<'a>, name: &[u8]) -> Option<&'a Stream> {
        let found = self.find(resources, b"XObject", name)?.as_stream().ok()?;
        let kind = found.dict.get_deref(b"Subtype", self.document).ok()?;
        (kind.as_name().ok()? == b"Form").then_some(found)
    }

    fn encoding(&mut self, resources: &Resources<'a>, name: &[u8]) -> Option<Rc<Encoding<'a>>> {
        let font = self.find(resources, b"Font", name)?.as_dict().ok()?;
        let (document, bounds) = (self.document, self.bounds);
        let encoding = self.encodings.entry(std::ptr::from_ref(font));
        encoding
            .or_insert_with(|| {
                if bounds.are_over() {
                    return None;
                }
                let encoding = font.get_font_encoding_with_limit(document, MAX_STREAM);
                encoding.ok().map(Rc::new)
            })
            .clone()
    }

    /// What a name means among those of its kind.
    fn find(&self, resources: &Resources<'a>, kind: &[u8], name: &[u8]) -> Option<&'a Object> {
        let document = self.document;
        resources.iter().find_map(|resources| {
            let named = resources.get_deref(kind, document).ok()?.as_dict().ok()?;
            named.get_deref(name, document).ok()
        })
    }
}
