//! One command a file.

pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod ls;
pub(crate) mod probe;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod selftest;
pub(crate) mod template;
mod terminal;
