//! Tries something in a forked child, so that neither success nor failure affects this process.
//!
//! The program around us may have threads. A child therefore makes system calls and allocates (the C library keeps the
//! heap usable across a fork), but takes no lock, prints nothing and does not panic. Its answer comes through a pipe.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions};

/// How long a child may take. Each takes milliseconds, or seconds on a host that is very busy; a dead network disk must not hang
/// the report.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Which step failed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: String,
    pub(crate) errno: Errno,
}

impl Failure {
    pub(crate) fn new(step: &str, errno: Errno) -> Self {
        let step = step.to_owned();
        Self { step, errno }
    }

    /// The failure as text for the report.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.step, std::io::Error::from(self.errno))
    }
}

/// The result of a step.
pub(crate) type Attempt<T = ()> = Result<T, Failure>;

/// Names the step that an error belongs to.
pub(crate) trait StepExt<T> {
    fn step(self, name: &str) -> Attempt<T>;
}

impl<T> StepExt<T> for Result<T, Errno> {
    fn step(self, name: &str) -> Attempt<T> {
        self.map_err(|errno| Failure::new(name, errno))
    }
}

impl<T> StepExt<T> for std::io::Result<T> {
    fn step(self, name: &str) -> Attempt<T> {
        self.map_err(|error| Failure::new(name, Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }
}

/// Runs `work` in a child.
pub(crate) fn attempt(work: impl FnOnce() -> Attempt) -> Attempt {
    attempt_with(|_| Ok(()), |_| work())
}

/// Runs `prepare` in a child, then `help` here with its pid, then `work` in the child.
pub(crate) fn attempt_helped(
    prepare: impl FnOnce() -> Attempt,
    help: impl FnOnce(Pid) -> Attempt,
    work: impl FnOnce() -> Attempt,
) -> Attempt {
    attempt_with(help, |barrier| {
        prepare()?;
        barrier.pass()?;
        work()
    })
}

/// The child's side of [`attempt_helped`].
struct Barrier<'fds> {
    ready: BorrowedFd<'fds>,
    go: BorrowedFd<'fds>,
}

impl Barrier<'_> {
    fn pass(&self) -> Attempt {
        rustix::io::write(self.ready, b"r").step("tell the parent")?;
        match rustix::io::read(self.go, &mut [0_u8; 1]).step("wait for the parent")? {
            1 => Ok(()),
            _ => Err(Failure::new("wait for the parent", Errno::PIPE)),
        }
    }
}

fn attempt_with(
    help: impl FnOnce(Pid) -> Attempt,
    work: impl FnOnce(&Barrier<'_>) -> Attempt,
) -> Attempt {
    let (answer_reader, answer_writer) = pipe_with(PipeFlags::CLOEXEC).step("make a pipe")?;
    let (go_reader, go_writer) = pipe_with(PipeFlags::CLOEXEC).step("make a pipe")?;
    // SAFETY: the child only runs `work`, within the rules in the module's text, and leaves by _exit.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::new("fork", last_errno())),
        0 => {
            drop((answer_reader, go_writer));
            die_with_parent();
            let barrier = Barrier {
                ready: answer_writer.as_fd(),
                go: go_reader.as_fd(),
            };
            let message = encode(&work(&barrier));
            let _ = rustix::io::write(&answer_writer, message.as_bytes());
            // SAFETY: ends the child with none of the parent's handlers run.
            unsafe { libc::_exit(0) }
        }
        pid => {
            drop((answer_writer, go_reader));
            let child = Child(Pid::from_raw(pid).expect("fork gave neither 0 nor an error"));
            read_answer(&child, &answer_reader, go_writer, help)
        }
    }
}

/// Reads the answer, helping in between if the child asks for it.
fn read_answer(
    child: &Child,
    answer: &OwnedFd,
    go: OwnedFd,
    help: impl FnOnce(Pid) -> Attempt,
) -> Attempt {
    let deadline = Instant::now() + TIMEOUT;
    let mut first = [0_u8; 1024];
    let count = read_until(answer, &mut first, deadline)?;
    if &first[..count] != b"r" {
        return decode(&first[..count]);
    }
    help(child.0)?;
    rustix::io::write(&go, b"g").step("tell the child")?;
    let count = read_until(answer, &mut first, deadline)?;
    decode(&first[..count])
}

fn read_until(answer: &OwnedFd, buffer: &mut [u8], deadline: Instant) -> Attempt<usize> {
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(Failure::new("wait for the attempt", Errno::TIMEDOUT));
        }
        let remaining = Timespec::try_from(remaining).ok();
        let mut fds = [PollFd::new(answer, PollFlags::IN)];
        match rustix::event::poll(&mut fds, remaining.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return rustix::io::read(answer, &mut *buffer).step("read the answer"),
            Err(errno) => return Err(Failure::new("wait for the attempt", errno)),
        }
    }
}

/// A child, killed and reaped on drop.
struct Child(Pid);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(self.0, Signal::KILL);
        let _ = rustix::io::retry_on_intr(|| {
            rustix::process::waitpid(Some(self.0), WaitOptions::empty())
        });
    }
}

fn encode(result: &Attempt) -> String {
    match result {
        Ok(()) => "0".to_owned(),
        Err(failure) => format!("{} {}", failure.errno.raw_os_error(), failure.step),
    }
}

fn decode(message: &[u8]) -> Attempt {
    let text = String::from_utf8_lossy(message);
    match text.split_once(' ') {
        None if text == "0" => Ok(()),
        Some((errno, step)) => {
            let errno = errno.parse().unwrap_or(libc::EIO);
            Err(Failure::new(step, Errno::from_raw_os_error(errno)))
        }
        // A child that died, as an outer system call filter can make it, sends nothing.
        None => Err(Failure::new("the child process died", Errno::IO)),
    }
}

/// Kills the caller if its parent goes first.
pub(crate) fn die_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// Gives the error of the last call through the C library.
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Turns the C library's -1 into an error.
pub(crate) fn checked(result: libc::c_long) -> Result<libc::c_long, Errno> {
    match result {
        -1 => Err(last_errno()),
        result => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_comes_back_from_the_child() {
        assert_eq!(attempt(|| Ok(())), Ok(()));
        let failure = Failure::new("do it", Errno::PERM);
        assert_eq!(
            attempt(|| Err(Failure::new("do it", Errno::PERM))),
            Err(failure)
        );
    }

    #[test]
    fn child_that_dies_is_a_failure() {
        // SAFETY: ends the child at once.
        let result = attempt(|| unsafe { libc::_exit(1) });
        assert_eq!(result.unwrap_err().step, "the child process died");
    }

    #[test]
    fn parent_helps_between_the_two_halves() {
        let file = std::env::temp_dir().join(format!("sandyard-doctor-{}", std::process::id()));
        let result = attempt_helped(
            || Ok(()),
            |_| std::fs::write(&file, "helped").step("write"),
            || std::fs::metadata(&file).map(|_| ()).step("stat"),
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn help_that_fails_ends_the_attempt() {
        let result = attempt_helped(
            || Ok(()),
            |_| Err(Failure::new("help", Errno::PERM)),
            || Ok(()),
        );
        assert_eq!(result, Err(Failure::new("help", Errno::PERM)));
    }
}
