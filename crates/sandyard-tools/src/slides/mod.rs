//! Presentations: HTML files and a list of them.
//!
//! ```text
//! presentations/NAME/slide_001.html   one slide
//! presentations/NAME/metadata.json    {"name", "slides": [{"number", "title", "description", "file", "updated"}]}
//! ```
//!
//! The files are what counts: the list is made from them after every change, and takes over titles from the list before.

mod deck;
#[cfg(test)]
mod tests;
mod tools;

pub(crate) use self::tools::tools;
