//! Commands with `--local`: they use the engine of a data directory, without a server.

mod ls;
mod rm;
pub(super) mod template;

pub(super) use ls::ls;
pub(super) use rm::rm;
