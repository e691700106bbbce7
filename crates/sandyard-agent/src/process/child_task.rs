//! What a supervisor's child runs.

use std::os::fd::RawFd;

use super::report::Stage;
use super::stdio::ChildStdio;

/// A task that a supervisor forks a child for.
pub(super) trait ChildTask {
    /// Descriptors that the child needs besides its input and output.
    fn inherited_fds(&self) -> &[RawFd];

    /// Runs the task in this process. Returns only on failure, with the stage and the error number. On success every other
    /// descriptor is closed, which tells the supervisor.
    fn run_in_child(&self, stdio: &ChildStdio) -> (Stage, i32);
}
