//! Runs one attempt in a forked child, so that whatever it does to itself, or however long it hangs, ends with it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde::{Serialize, de::DeserializeOwned};

/// How a child ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// It came back with this.
    Returned(T),
    /// A signal ended it first.
    Signalled(i32),
    /// It left without a word.
    Exited(i32),
    /// It was killed at its deadline.
    TimedOut,
}

/// Runs `work` in a child of its own process group and waits at most `limit`.
///
/// The caller must be single-threaded: the child allocates.
pub(crate) fn isolated<T>(limit: Duration, work: impl FnOnce() -> T) -> io::Result<Ended<T>>
where
    T: Serialize + DeserializeOwned,
{
    let (reader, writer) = pipe()?;
    // SAFETY: the process is single-threaded, so the child may go on like its parent.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(reader);
            live(writer, limit, work)
        }
        _ => {
            drop(writer);
            // Also here, since nobody knows who runs first, and the kill below is for the group.
            // SAFETY: plain numbers.
            unsafe { libc::setpgid(pid, pid) };
            let line = read_line(reader, limit);
            Ok(end(pid, line))
        }
    }
}

/// The child's life.
fn live<T: Serialize>(mut writer: File, limit: Duration, work: impl FnOnce() -> T) -> ! {
    // SAFETY: plain numbers; the alarm is the second string, should the parent be gone.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(u32::try_from(limit.as_secs()).unwrap_or(60) + 5);
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let code = match result {
        Ok(value) => {
            let mut line = serde_json::to_vec(&value).unwrap_or_default();
            line.push(b'\n');
            i32::from(writer.write_all(&line).is_err())
        }
        Err(_) => 101,
    };
    // SAFETY: ends this process only, without the parent's exit handlers.
    unsafe { libc::_exit(code) }
}

/// Reads up to the newline; a grandchild may keep the pipe open for ever, so end of file is not waited for.
fn read_line(mut reader: File, limit: Duration) -> Option<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let mut line = Vec::new();
    let mut chunk = [0_u8; 4096];
    loop {
        let remaining = deadline.checked_duration_since(Instant::now())?;
        let timeout = rustix::event::Timespec::try_from(remaining).ok()?;
        let ready = poll(
            &mut [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)],
            Some(&timeout),
        );
        match ready {
            Ok(0) => return None,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        let count = reader.read(&mut chunk).unwrap_or(0);
        line.extend_from_slice(&chunk[..count]);
        if count == 0 || line.last() == Some(&b'\n') {
            return Some(line);
        }
    }
}

fn end<T: DeserializeOwned>(pid: i32, line: Option<Vec<u8>>) -> Ended<T> {
    let value = line
        .as_deref()
        .and_then(|line| serde_json::from_slice(line).ok());
    if value.is_some() || line.is_none() {
        // SAFETY: plain numbers; the group is the child's own, and the child is not yet waited for.
        unsafe {
            libc::kill(-pid, libc::SIGKILL);
            libc::kill(pid, libc::SIGKILL);
        }
    }
    let status = wait(pid);
    match value {
        Some(value) => Ended::Returned(value),
        None if line.is_none() => Ended::TimedOut,
        None if libc::WIFSIGNALED(status) => Ended::Signalled(libc::WTERMSIG(status)),
        None => Ended::Exited(libc::WEXITSTATUS(status)),
    }
}

/// Waits for a child and returns its raw status.
pub(crate) fn wait(pid: i32) -> i32 {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live integer.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if waited == pid || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return status;
        }
    }
}

fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both are fresh and owned by nobody else.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}
