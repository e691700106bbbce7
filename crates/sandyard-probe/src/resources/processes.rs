//! The fork bomb.

use std::io;
use std::time::Duration;

use super::{Exhausted, StoppedBy};
use crate::child::wait;
use crate::sys::Errno;

/// Forks sleeping children until the kernel refuses, counts them, then wakes them all to fork on for a while.
pub(super) fn bomb(give_up_at: u64, storm_seconds: u64) -> io::Result<Exhausted> {
    // The leader is in a process group of its own, and all below it stay there: one signal ends the whole storm, since
    // a fork that races with it is restarted and the signal seen first.
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: single-threaded; the child only makes async-signal-safe calls.
    let leader = unsafe { libc::fork() };
    match leader {
        -1 => Err(io::Error::last_os_error()),
        0 => lead(ends[1], give_up_at),
        _ => {
            // SAFETY: plain descriptors and numbers, and a live buffer of 12 bytes.
            let count = unsafe {
                libc::setpgid(leader, leader);
                libc::close(ends[1]);
                let mut report = [0_u8; 12];
                let got = libc::read(ends[0], report.as_mut_ptr().cast(), report.len());
                libc::close(ends[0]);
                (got == 12).then_some(report)
            };
            std::thread::sleep(Duration::from_secs(storm_seconds));
            // SAFETY: the group is our child's own.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
            wait(leader);
            let report = count.ok_or_else(|| {
                io::Error::other("the leader of the bomb died before it could count")
            })?;
            Ok(parse_report(&report))
        }
    }
}

fn parse_report(report: &[u8; 12]) -> Exhausted {
    let (count, errno) = report.split_at(8);
    let reached = u64::from_ne_bytes(count.try_into().expect("8 of 12 bytes"));
    match i32::from_ne_bytes(errno.try_into().expect("4 of 12 bytes")) {
        0 => Exhausted {
            reached,
            stopped_by: StoppedBy::GaveUp,
            detail: "nothing refused".into(),
        },
        errno => Exhausted {
            reached,
            stopped_by: StoppedBy::Refused,
            detail: format!("fork gave {}", Errno(errno)),
        },
    }
}

/// The leader: fills up, reports count and error number, and joins the storm.
fn lead(report: i32, give_up_at: u64) -> ! {
    // SAFETY: plain numbers.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::signal(libc::SIGUSR1, storm as *const () as libc::sighandler_t);
    }
    let mut count = 0_u64;
    let mut errno = 0;
    while count < give_up_at {
        // SAFETY: the child only waits for a signal.
        match unsafe { libc::fork() } {
            0 => loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            },
            -1 => {
                errno = Errno::last().0;
                break;
            }
            _ => count += 1,
        }
    }
    let mut line = [0_u8; 12];
    line[..8].copy_from_slice(&count.to_ne_bytes());
    line[8..].copy_from_slice(&errno.to_ne_bytes());
    // SAFETY: a live buffer; then a signal to our own group, us included.
    unsafe {
        libc::write(report, line.as_ptr().cast(), line.len());
        libc::close(report);
        libc::kill(0, libc::SIGUSR1);
    }
    loop {
        // SAFETY: waits to be killed, should the handler ever return.
        unsafe { libc::pause() };
    }
}

/// The bomb proper; children inherit it. `fork` is async-signal-safe enough for a process that does nothing else.
extern "C" fn storm(_: i32) {
    loop {
        // SAFETY: parent and child alike go on here until killed. Raw, to keep the library's fork handlers out of it.
        unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    }
}
