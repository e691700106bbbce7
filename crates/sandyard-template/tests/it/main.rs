//! Tests of templates as the engine uses them.

mod archives;
mod diff;
mod host;
mod hostile;
mod images;
mod import;
mod lookup;
mod overlay;
mod property;
mod snapshot;
mod store;
mod support;
