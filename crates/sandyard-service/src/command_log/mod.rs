//! The output of commands, in files that outlive the server and the sandbox.
//!
//! ```text
//!  agent ─▶ recorder of the command ─▶ line_splitter ─▶ queue ─▶ writer thread ─▶ files ◀─ reader
//! ```
//!
//! Each sandbox has a folder below `<data>/logs`. A recorder queues output and continues; one thread writes it in batches, so that a
//! command is hardly delayed and no worker waits for a disk. The files say for each command up to which position its output is in the
//! log. After a crash the next server continues from there at the agent, which keeps what is not recorded.
//!
//! Nothing is synced to the disk. A killed server loses nothing that the kernel has, and after a power failure the sandbox's processes
//! are gone as well.

mod disk;
mod files;
mod line_splitter;
mod logs;
mod queue;
mod reader;
mod record;
mod retention;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use self::logs::{CommandLogs, WhenFull};
pub(crate) use self::reader::{LogCursor, LogPage};
pub(crate) use self::record::OpenCommand;
