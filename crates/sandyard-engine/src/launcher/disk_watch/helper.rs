//! The process that pauses, resumes, stops or writes out for the watcher: it may read records, and it may take long.

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::context::Context;
use crate::launcher::run_and_report;
use crate::sys::clone::{Forked, fork};

/// What the helper was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// To resume sandboxes that were paused for want of room. A failure is remembered.
    Resume,
    /// Anything else: the next check finds out whether it must be done again.
    Other,
}

/// At most one process at a time.
#[derive(Debug, Default)]
pub(super) struct Helper {
    running: Option<(i32, Task)>,
    has_failed_resume: bool,
}

impl Helper {
    pub(super) fn is_free(&self) -> bool {
        self.running.is_none()
    }

    /// Does `work` in a process of its own. It returns whether it succeeded.
    pub(super) fn start(&mut self, ctx: &Context, task: Task, work: impl FnOnce(&Context) -> bool) {
        match fork() {
            Ok(Forked::Parent { pid }) => self.running = Some((pid, task)),
            Ok(Forked::Child) => run_and_report(|| work(ctx)),
            Err(_) => self.has_failed_resume |= task == Task::Resume,
        }
    }

    /// Notices when the process has ended.
    pub(super) fn reap(&mut self) {
        let Some((pid, task)) = self.running else {
            return;
        };
        let ended = match waitpid(Pid::from_raw(pid), WaitOptions::NOHANG) {
            Ok(None) => return,
            ended => ended,
        };
        let succeeded = matches!(ended, Ok(Some((_, status))) if status.exit_status() == Some(0));
        self.has_failed_resume |= task == Task::Resume && !succeeded;
        self.running = None;
    }

    /// Says whether resuming has failed since the last call.
    pub(super) fn take_failed_resume(&mut self) -> bool {
        std::mem::take(&mut self.has_failed_resume)
    }
}
