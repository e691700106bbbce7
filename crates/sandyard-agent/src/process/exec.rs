//! Executing a command's program in a forked child.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::fd::RawFd;
use std::ptr;

use super::child_task::ChildTask;
use super::command::Command;
use super::report::{Stage, close, errno, send};
use super::signals::{empty_signals, set_signal_mask};
use super::stdio::ChildStdio;

/// Null-terminated arrays for `execve`, created before the fork.
struct Pointers {
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
}

impl Pointers {
    fn new(command: &Command) -> Self {
        let terminated = |strings: &[CString]| {
            let pointers = strings.iter().map(|text| text.as_ptr());
            pointers.chain([ptr::null()]).collect()
        };
        Self {
            argv: terminated(&command.argv),
            env: terminated(&command.env),
        }
    }
}

/// A command to execute.
pub(super) struct Execute<'a> {
    command: &'a Command,
    pointers: Pointers,
}

impl<'a> Execute<'a> {
    pub(super) fn new(command: &'a Command) -> Self {
        Self {
            command,
            pointers: Pointers::new(command),
        }
    }
}

impl ChildTask for Execute<'_> {
    fn inherited_fds(&self) -> &[RawFd] {
        &[]
    }

    fn run_in_child(&self, stdio: &ChildStdio) -> (Stage, i32) {
        if let Err(failure) = prepare_child(self.command, stdio) {
            return failure;
        }
        // SAFETY: marks every further descriptor to be closed by exec, the pipe of failures too; ours are 0, 1 and 2.
        unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int) };
        crate::limits::restore_in_child();
        set_signal_mask(&empty_signals());
        (Stage::Exec, exec(&self.command.programs, &self.pointers))
    }
}

/// Gives this process the command's input and output, user and working directory.
pub(super) fn prepare_child(command: &Command, stdio: &ChildStdio) -> Result<(), (Stage, i32)> {
    if stdio.install().is_err() {
        return Err((Stage::Stdio, errno()));
    }
    raise_oom_score(command);
    if let Err(errno) = take_identity(command) {
        return Err((Stage::Identity, errno));
    }
    // SAFETY: plain system calls; `cwd` is a C string. The death signal comes after the change of user, which clears it.
    let moved = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::umask(0o022);
        libc::chdir(command.cwd.as_ptr())
    };
    if moved != 0 {
        return Err((Stage::WorkingDirectory, errno()));
    }
    Ok(())
}

fn exec(programs: &[CString], pointers: &Pointers) -> i32 {
    let mut failure = libc::ENOENT;
    for program in programs {
        // SAFETY: both arrays end with a null pointer and their strings live in `Command`.
        unsafe {
            libc::execve(
                program.as_ptr(),
                pointers.argv.as_ptr(),
                pointers.env.as_ptr(),
            )
        };
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            // As in a shell: a later entry of the path may succeed.
            libc::EACCES => failure = libc::EACCES,
            other => return other,
        }
    }
    failure
}

fn take_identity(command: &Command) -> Result<(), i32> {
    let Some(identity) = &command.identity else {
        return Ok(());
    };
    // SAFETY: the list is valid for its length.
    let grouped = unsafe { libc::setgroups(identity.groups.len(), identity.groups.as_ptr()) };
    // A user namespace may forbid this call. The process then keeps the agent's groups, which has none.
    if grouped != 0 && errno() != libc::EPERM {
        return Err(errno());
    }
    // SAFETY: plain system calls.
    if unsafe { libc::setgid(identity.gid) } != 0 || unsafe { libc::setuid(identity.uid) } != 0 {
        return Err(errno());
    }
    Ok(())
}

fn raise_oom_score(command: &Command) {
    let Some(score) = &command.oom_score_adj else {
        return;
    };
    const PATH: &CStr = c"/proc/self/oom_score_adj";
    // SAFETY: the path is a C string.
    let file = unsafe { libc::open(PATH.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if file >= 0 {
        // Best effort: a sandbox without /proc still runs commands.
        send(file, score.as_bytes());
        close(file);
    }
}
