//! What a worker can do, one verb a file. Each takes the lock of the sandbox it changes and leaves a state on disk from which
//! a sweep can go on, wherever it is interrupted.

pub(crate) mod backup;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod fork;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod pause;
pub(crate) mod pool;
pub(crate) mod resume;
pub(crate) mod snapshot;
pub(crate) mod start;
pub(crate) mod stats;
pub(crate) mod stop;
pub(crate) mod sweep;
pub(crate) mod volume;

#[cfg(test)]
mod tests;
