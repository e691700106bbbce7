//! Words as commands get them.

use super::Shell;
use super::lex::{Piece, Word};
use crate::agent::account::resolve;

impl Shell {
    /// A path as seen from where the shell is.
    pub(super) fn path(&self, path: &str) -> String {
        // What cannot be a path names nothing that is there.
        resolve(path, &self.cwd, self.account.home).unwrap_or_else(|_| "/\u{fffd}".to_owned())
    }

    fn value(&self, name: &str, default: &str) -> String {
        match name {
            "?" => self.last.to_string(),
            "$" => self
                .process
                .as_ref()
                .map_or(0, |process| process.pid)
                .to_string(),
            "PWD" => self.cwd.clone(),
            name => match self.env.get(name).filter(|value| !value.is_empty()) {
                Some(value) => value.clone(),
                None => default.to_owned(),
            },
        }
    }

    /// A word as one text.
    pub(super) fn text(&self, word: &Word) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text { text, .. } => text.clone(),
            Piece::Variable { name, default, .. } => self.value(name, default),
            Piece::Home => self.value("HOME", self.account.home),
        };
        word.iter().map(text).collect()
    }

    /// A word as what a command gets of it: values that are not in quotes are split where they have blanks.
    pub(super) fn fields(&self, word: &Word) -> Vec<String> {
        match word.as_slice() {
            [
                Piece::Variable {
                    name,
                    default,
                    is_quoted: false,
                },
            ] => {
                let value = self.value(name, default);
                value.split_whitespace().map(str::to_owned).collect()
            }
            _ => vec![self.text(word)],
        }
    }
}

/// A name and a value, where a word sets a variable.
pub(super) fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |next: char| next.is_ascii_alphanumeric() || next == '_';
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (begins_well && name.chars().all(is_name)).then(|| (name.to_owned(), value.to_owned()))
}
