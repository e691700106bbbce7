//! Copies a command's output into its ring and notices its end.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use sandyard_wire::EndEvent;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use super::report::{REPORT_BYTES, Report};
use super::ring::Channel;
use super::tracked_process::Process;
use super::tree;

/// Maximum bytes per read.
const READ_BYTES: usize = 32 * 1024;

/// How long the kernel may take to deliver a terminal's last output after the command's end.
const TERMINAL_GRACE: Duration = Duration::from_millis(300);

/// Maximum number of pipes that are drained for background children.
const MAX_LEFT_OPEN: usize = 256;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static LEFT_OPEN: Cell<usize> = const { Cell::new(0) };
}

/// The read end of a pipe or terminal.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) channel: Channel,
    pub(super) fd: AsyncFd<OwnedFd>,
}

/// Serves a process until its end; at `deadline` its whole tree is killed. Returns pipes that background children hold open.
pub(super) async fn run(
    process: &Rc<Process>,
    sources: Vec<Source>,
    status: AsyncFd<OwnedFd>,
    deadline: Option<Instant>,
) -> Vec<Source> {
    let life = async {
        let end = until_end(process, &status, deadline).await;
        process.set_exited();
        end
    };
    let drains = sources.into_iter().map(|source| drain(process, source));
    let (end, left_open) = tokio::join!(life, join_all(drains));
    process.finish(end);
    left_open.into_iter().flatten().collect()
}

/// Reads and discards output of background children, so that a broken pipe does not end them.
pub(super) async fn discard(left_open: Vec<Source>) {
    let count = LEFT_OPEN.get() + left_open.len();
    if left_open.is_empty() || count > MAX_LEFT_OPEN {
        return;
    }
    LEFT_OPEN.set(count);
    let ended = left_open.len();
    join_all(
        left_open
            .into_iter()
            .map(|source| async move { while let Ok(1..) = read_ready(&source, |_| ()).await {} }),
    )
    .await;
    LEFT_OPEN.set(LEFT_OPEN.get() - ended);
}

async fn until_end(
    process: &Process,
    status: &AsyncFd<OwnedFd>,
    deadline: Option<Instant>,
) -> EndEvent {
    let expiry = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    let report = tokio::select! {
        report = next_report(status) => report,
        () = expiry => {
            process.timed_out.set(true);
            tree::kill_descendants(process.supervisor).await;
            next_report(status).await
        }
    };
    match report {
        Some(Report::Ended { status }) => end_of_status(status),
        // A program inside killed the supervisor, and the command died with it.
        _ => EndEvent::signalled(libc::SIGKILL),
    }
}

/// Waits for a supervisor's next report; `None` when it is gone.
pub(super) async fn next_report(status: &AsyncFd<OwnedFd>) -> Option<Report> {
    let mut bytes = [0; REPORT_BYTES];
    loop {
        let mut ready = status.readable().await.ok()?;
        match ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut bytes)?)) {
            // A pipe does not split writes as small as a report.
            Ok(Ok(REPORT_BYTES)) => return Report::decode(bytes),
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) => return None,
            Err(_would_block) => {}
        }
    }
}

/// Reads output to its end; returns a source that other processes still hold open.
async fn drain(process: &Process, source: Source) -> Option<Source> {
    loop {
        process.wait_for_space(READ_BYTES).await;
        tokio::select! {
            biased;
            taken = take(process, &source) => match taken {
                Ok(1..) => {}
                _ => return None,
            },
            () = process.wait_exited() => break,
        }
    }
    match source.channel {
        Channel::Pty => {
            let rest = async {
                while let Ok(1..) = take(process, &source).await {
                    process.wait_for_space(READ_BYTES).await;
                }
            };
            let _ = tokio::time::timeout(TERMINAL_GRACE, rest).await;
            None
        }
        Channel::Stdout | Channel::Stderr => drain_pending(process, source).await,
    }
}

/// Reads what was in the pipe when the command ended, but not what others add to it.
async fn drain_pending(process: &Process, source: Source) -> Option<Source> {
    let mut pending = rustix::io::ioctl_fionread(source.fd.get_ref()).unwrap_or(0);
    loop {
        process.wait_for_space(READ_BYTES).await;
        let max = usize::try_from(pending).unwrap_or(usize::MAX).max(1);
        // With nothing pending, one more read shows whether the pipe is closed.
        let mut taken = 0;
        let read = read_now(source.fd.get_ref(), max, |bytes| {
            taken = bytes.len() as u64;
            process.push(source.channel, bytes);
        });
        match read {
            Ok(0) => return None,
            Ok(_) if pending > taken => pending -= taken,
            Ok(_) => return Some(source),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(source),
            Err(_) => return None,
        }
        tokio::task::yield_now().await;
    }
}

async fn take(process: &Process, source: &Source) -> io::Result<usize> {
    read_ready(source, |bytes| process.push(source.channel, bytes)).await
}

/// Waits until something can be read and reads it once.
pub(super) async fn read_ready(source: &Source, mut sink: impl FnMut(&[u8])) -> io::Result<usize> {
    loop {
        let mut ready = source.fd.readable().await?;
        match ready.try_io(|fd| read_now(fd.get_ref(), READ_BYTES, &mut sink)) {
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(read) => return read,
            Err(_would_block) => {}
        }
    }
}

fn read_now(fd: &OwnedFd, max: usize, sink: impl FnOnce(&[u8])) -> io::Result<usize> {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.resize(READ_BYTES, 0);
        let count = rustix::io::read(fd, &mut scratch[..max.min(READ_BYTES)])?;
        if count > 0 {
            sink(&scratch[..count]);
        }
        Ok(count)
    })
}

pub(super) fn end_of_status(status: i32) -> EndEvent {
    if libc::WIFSIGNALED(status) {
        EndEvent::signalled(libc::WTERMSIG(status))
    } else {
        EndEvent::exited(libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_becomes_the_expected_end_event() {
        let ok = end_of_status(0);
        assert_eq!((ok.exit_code, ok.exited, ok.error), (0, true, None));
        let failed = end_of_status(3 << 8);
        assert_eq!(failed.exit_code, 3);
        assert_eq!(failed.error.as_deref(), Some("exit status 3"));
        let killed = end_of_status(libc::SIGKILL);
        assert_eq!((killed.exit_code, killed.exited), (-1, false));
        assert_eq!(killed.status, "signal: killed");
    }
}
