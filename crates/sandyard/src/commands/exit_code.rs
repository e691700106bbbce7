//! Exit codes of the program, beside those of the commands it runs.

/// Sandyard failed, not the command it was to run.
pub(crate) const SANDYARD_FAILED: u8 = 125;
/// The command exceeded its time limit, as in `timeout(1)`.
pub(super) const TIMED_OUT: u8 = 124;
/// The command, the user or the working directory does not exist, as in shells.
pub(super) const NOT_STARTED: u8 = 127;
/// The command was killed: the code that a shell shows for SIGKILL.
pub(super) const KILLED: u8 = 128 + 9;
/// The reader of our output is gone: the code that a shell shows for SIGPIPE.
pub(super) const BROKEN_PIPE: u8 = 128 + 13;
/// The user interrupted us: the code that a shell shows for SIGINT.
pub(super) const INTERRUPTED: u8 = 128 + 2;
