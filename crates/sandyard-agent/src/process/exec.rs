//! From a forked child to the command's program.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::fd::RawFd;
use std::ptr;

use super::command::Command;
use super::errand::Errand;
use super::report::{Stage, close, errno, send};
use super::signals::{empty_signals, set_signal_mask};
use super::stdio::ChildStdio;

/// Null-terminated arrays for `execve`, made before the fork.
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

impl Errand for Execute<'_> {
    fn kept(&self) -> &[RawFd] {
        &[]
    }

    fn become_it(&self, stdio: &ChildStdio) -> (Stage, i32) {
        if let Err(failure) = take_place(self.command, stdio) {
            return failure;
        }
        // SAFETY: marks every further descriptor to be closed by exec, the pipe of failures too; ours are 0, 1 and 2.
        unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int) };
        crate::limits::restore_in_child();
        set_signal_mask(&empty_signals());
        (Stage::Exec, exec(&self.command.programs, &self.pointers))
    }
}

/// Makes this process the command's user, in its folder, in a session of its own, with its input and output.
pub(super) fn take_place(command: &Command, stdio: &ChildStdio) -> Result<(), (Stage, i32)> {
    // SAFETY: makes this process the leader of a session of its own.
    unsafe { libc::setsid() };
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
            // As a shell does: remember it, something later on the path may do.
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
    // A user namespace may forbid this call; the groups it then keeps are those of the agent, which has none.
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
