//! The same verbs without a server: straight to the engine of a data directory.

mod ls;
mod rm;
pub(super) mod template;

pub(super) use ls::ls;
pub(super) use rm::rm;
