//! Presentations: slides as HTML files, and a list of them.
//!
//! ```text
//! presentations/NAME/slide_001.html   one slide
//! presentations/NAME/metadata.json    {"name", "slides": [{"number", "title", "description", "file", "updated"}]}
//! ```
//!
//! The list is rebuilt from the files after every change. Titles are taken from the previous list.

mod deck;
#[cfg(test)]
mod tests;
mod tools;

pub(crate) use self::tools::tools;
