//! The search tools over real folders.

mod code;
mod names;
mod words;
