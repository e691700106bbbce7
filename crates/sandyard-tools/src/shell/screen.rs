//! Plain text from terminal output.
//!
//! The last lines are kept like a terminal's screen, so that progress bars and menus look as a person would see them. Lines that
//! scrolled out at the top no longer change. Unlike a terminal, it does not wrap lines and keeps tabs, so that a model gets the
//! output as the program wrote it; terminal emulators such as the crate `vt100` cannot do that.

use std::collections::VecDeque;

use super::bounded_text::{BoundedText, Excerpt};
use super::escape_sequences::{EscapeParser, Token};

/// Number of rows of the terminal, which are the lines that can still change.
pub(super) const ROWS: u16 = 50;
/// Number of columns that programs see.
pub(super) const COLUMNS: u16 = 160;
/// Maximum number of characters of a line that can still change.
const MAX_LINE: usize = 4_096;

/// Plain text from a stream of terminal output.
#[derive(Debug, Default)]
pub(super) struct Screen {
    scrolled_out: BoundedText,
    page: Page,
    /// The normal page while a program uses the alternate screen.
    normal_page: Option<Page>,
    escapes: EscapeParser,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
}

#[derive(Debug, Default)]
struct Page {
    rows: VecDeque<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    /// Processes the next chunk of the stream.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let (valid, error_length) = match str::from_utf8(rest) {
                Ok(_) => (rest.len(), None),
                Err(error) => (error.valid_up_to(), Some(error.error_len())),
            };
            for char in String::from_utf8_lossy(&rest[..valid]).chars() {
                self.process(char);
            }
            rest = &rest[valid..];
            match error_length {
                None => {}
                Some(Some(length)) => {
                    self.process(char::REPLACEMENT_CHARACTER);
                    rest = &rest[length..];
                }
                Some(None) => {
                    self.partial = rest.to_vec();
                    return;
                }
            }
        }
    }

    /// The whole text, within the limits.
    pub(super) fn excerpt(&self) -> Excerpt {
        let page = self.page.text();
        self.scrolled_out.excerpt_with(page.trim_end_matches('\n'))
    }

    /// The last line that is not blank.
    pub(super) fn last_line(&self) -> String {
        let line = self
            .page
            .rows
            .iter()
            .rev()
            .find(|row| row.iter().any(|char| !char.is_whitespace()));
        line.map_or_else(String::new, |row| row.iter().take(200).collect())
    }

    fn process(&mut self, char: char) {
        match self.escapes.next(char) {
            Token::None => {}
            Token::Char(char) => self.put(char),
            Token::Newline => self.newline(),
            Token::Return => self.page.column = 0,
            Token::Back => self.page.column = self.page.column.saturating_sub(1),
            Token::Control(action, numbers) => self.control(action, &numbers),
        }
    }

    fn put(&mut self, char: char) {
        let page = &mut self.page;
        let column = page.column;
        let line = page.line();
        if line.len() <= column {
            line.resize(column, ' ');
            line.push(char);
        } else {
            line[column] = char;
        }
        page.column += 1;
        if page.column >= MAX_LINE {
            self.flush_line();
        }
    }

    /// Turns a line that is too long, and everything above it, into text that no longer changes.
    fn flush_line(&mut self) {
        let page = &mut self.page;
        page.line();
        let done: String = page.rows.drain(..=page.row).enumerate().fold(
            String::new(),
            |mut text, (index, row)| {
                if index > 0 {
                    text.push('\n');
                }
                text.extend(row);
                text
            },
        );
        page.row = 0;
        page.column = 0;
        if self.normal_page.is_none() {
            self.scrolled_out.push(&done);
        }
    }

    fn newline(&mut self) {
        self.page.column = 0;
        self.page.row += 1;
        self.page.line();
        while self.page.rows.len() > usize::from(ROWS) {
            self.page.row = self.page.row.saturating_sub(1);
            let row = self.page.rows.pop_front().unwrap_or_default();
            if self.normal_page.is_none() {
                let mut text: String = row.into_iter().collect();
                text.push('\n');
                self.scrolled_out.push(&text);
            }
        }
    }

    fn control(&mut self, action: char, numbers: &[u16]) {
        let first = numbers.first().copied().unwrap_or(0);
        let count = usize::from(first.max(1));
        let last_row = usize::from(ROWS) - 1;
        let is_alternate_screen = numbers.contains(&1049) || numbers.contains(&47);
        let page = &mut self.page;
        match action {
            'A' | 'F' => page.row = page.row.saturating_sub(count),
            'B' | 'E' => page.row = (page.row + count).min(last_row),
            'C' => page.column = (page.column + count).min(MAX_LINE - 1),
            'D' => page.column = page.column.saturating_sub(count),
            'G' | '`' => page.column = (count - 1).min(MAX_LINE - 1),
            'd' => page.row = (count - 1).min(last_row),
            'H' | 'f' => {
                let column = usize::from(numbers.get(1).copied().unwrap_or(0).max(1));
                page.row = (count - 1).min(last_row);
                page.column = (column - 1).min(MAX_LINE - 1);
            }
            'J' => self.erase_page(first),
            'K' => page.erase_line(first),
            'P' => {
                let from = page.column.min(page.line().len());
                let to = (from + count).min(page.line().len());
                page.line().drain(from..to);
            }
            'X' => {
                let from = page.column;
                for cell in page.line().iter_mut().skip(from).take(count) {
                    *cell = ' ';
                }
            }
            'h' if is_alternate_screen && self.normal_page.is_none() => {
                self.normal_page = Some(std::mem::take(&mut self.page));
            }
            'l' if is_alternate_screen => {
                self.page = self
                    .normal_page
                    .take()
                    .unwrap_or_else(|| std::mem::take(page))
            }
            _ => {}
        }
        if matches!(action, 'E' | 'F') {
            self.page.column = 0;
        }
    }

    fn erase_page(&mut self, mode: u16) {
        let page = &mut self.page;
        page.line();
        match mode {
            0 => {
                page.rows.truncate(page.row + 1);
                page.erase_line(0);
            }
            1 => {
                page.rows.iter_mut().take(page.row).for_each(Vec::clear);
                page.erase_line(1);
            }
            _ => page.rows.iter_mut().for_each(Vec::clear),
        }
    }
}

impl Page {
    /// The line with the cursor.
    fn line(&mut self) -> &mut Vec<char> {
        if self.rows.len() <= self.row {
            self.rows.resize_with(self.row + 1, Vec::new);
        }
        &mut self.rows[self.row]
    }

    fn erase_line(&mut self, mode: u16) {
        let column = self.column;
        let line = self.line();
        match mode {
            0 => line.truncate(column),
            1 => line
                .iter_mut()
                .take(column + 1)
                .for_each(|cell| *cell = ' '),
            _ => line.clear(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            text.extend(row);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
