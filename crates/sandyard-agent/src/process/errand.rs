//! What a minder's child becomes.

use std::os::fd::RawFd;

use super::report::Stage;
use super::stdio::ChildStdio;

/// Something that a minder forks a child for.
pub(super) trait Errand {
    /// Descriptors it needs besides its input and output.
    fn kept(&self) -> &[RawFd];

    /// Turns this process into it. Returns only when that failed, with what and why; that it succeeded is seen by every
    /// other descriptor being closed.
    fn become_it(&self, stdio: &ChildStdio) -> (Stage, i32);
}
