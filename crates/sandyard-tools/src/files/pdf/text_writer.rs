//! Collects the text of a page. Uses text positions to separate lines and words.

use std::rc::Rc;

use lopdf::content::Operation;
use lopdf::{Document, Encoding, Object};

/// Collects the text of a page.
#[derive(Default)]
pub(super) struct TextWriter<'a> {
    /// The text so far.
    pub(super) text: String,
    /// The current font.
    pub(super) font: Font<'a>,
    /// Last position and scale of the text matrix.
    at: (f32, f32),
    scale: f32,
    /// Number of characters since the last move.
    char_count: usize,
}

/// A font in a size.
#[derive(Clone, Default)]
pub(super) struct Font<'a> {
    /// The encoding of its character codes; none if it is not known.
    pub(super) encoding: Option<Rc<Encoding<'a>>>,
    /// Font size.
    pub(super) size: f32,
}

impl TextWriter<'_> {
    /// Processes an operation of the page, if it is about text.
    pub(super) fn process(&mut self, operation: &Operation) {
        let operands = &operation.operands;
        let number = |at: usize| number(operands, at);
        match operation.operator.as_str() {
            "BT" => self.scale = 1.0,
            "Td" | "TD" => {
                let (x, y) = (number(0) * self.scale, number(1) * self.scale);
                self.move_to((self.at.0 + x, self.at.1 + y));
            }
            "Tm" => {
                self.scale = number(0).abs().max(number(1).abs());
                self.move_to((number(4), number(5)));
            }
            "T*" | "ET" => self.new_line(),
            "Tj" | "TJ" => operands.iter().for_each(|operand| self.show(operand)),
            "'" | "\"" => {
                self.new_line();
                if let Some(operand) = operands.last() {
                    self.show(operand);
                }
            }
            _ => {}
        }
    }

    fn move_to(&mut self, at: (f32, f32)) {
        let size = (self.font.size * self.scale).abs();
        let across = (at.0 - self.at.0).abs();
        if (at.1 - self.at.1).abs() > size * 0.3 {
            self.new_line();
        } else if self.char_count > 1 || across > size * 0.9 {
            // Documents that place every letter move by less than one.
            self.space();
        }
        self.at = at;
        self.char_count = 0;
    }

    fn show(&mut self, operand: &Object) {
        match operand {
            Object::String(bytes, _) => {
                let Some(encoding) = self.font.encoding.as_deref() else {
                    return;
                };
                let before = self.text.len();
                // What a font has no table for stays out.
                if let Ok(text) = Document::decode_text(encoding, bytes) {
                    self.text
                        .extend(text.chars().filter(|character| !character.is_control()));
                }
                self.char_count += self.text[before..].chars().count();
            }
            Object::Array(parts) => {
                for part in parts {
                    match part {
                        // In thousandths of the size, to the left.
                        Object::Integer(_) | Object::Real(_)
                            if part.as_float().is_ok_and(|by| by < -180.0) =>
                        {
                            self.space();
                        }
                        Object::String(..) => self.show(part),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Begins another line.
    pub(super) fn new_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.char_count = 0;
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }
}

/// A number among what an operation is given.
pub(super) fn number(operands: &[Object], at: usize) -> f32 {
    let operand = operands.get(at);
    operand
        .and_then(|operand| operand.as_float().ok())
        .unwrap_or_default()
}
