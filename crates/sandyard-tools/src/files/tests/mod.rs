//! The file tools at real files.

mod changes;
mod editor;
mod pdf;
mod reading;
