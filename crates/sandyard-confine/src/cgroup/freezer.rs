//! Stops and continues all processes of a group.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::CgroupError;
use super::tree::Tree;
use crate::cgroup::Result;

/// Asks for the new state; the kernel then works through the processes.
pub(super) fn request(tree: &Tree, group: &str, frozen: bool) -> Result<()> {
    if tree.is_v2 {
        let value = if frozen { "1" } else { "0" };
        tree.write(&format!("{group}/cgroup.freeze"), value)
    } else {
        let value = if frozen { "FROZEN" } else { "THAWED" };
        tree.write(&format!("{group}/freezer.state"), value)
    }
}

/// Waits until every process stands still. Tells whether they did in time.
pub(super) fn wait_frozen(tree: &Tree, group: &str, timeout: Duration) -> Result<bool> {
    if tree.is_v2 {
        return wait_event(tree, group, "frozen 1", timeout);
    }
    let file = format!("{group}/freezer.state");
    poll(timeout, || Ok(tree.read(&file)?.trim() == "FROZEN"))
}

/// How long to look again and again before leaving it to the kernel to tell.
const IMPATIENCE: Duration = Duration::from_millis(5);

/// Waits for a line of `cgroup.events`, woken by the kernel at each change.
pub(super) fn wait_event(tree: &Tree, group: &str, line: &str, timeout: Duration) -> Result<bool> {
    let file = format!("{group}/cgroup.events");
    let failed = |errno: rustix::io::Errno| CgroupError::Read {
        path: tree.display_path(&file),
        source: errno.into(),
    };
    let events = tree.open_file(&file).map_err(failed)?;
    let deadline = Instant::now() + timeout;
    let impatient_until = Instant::now() + IMPATIENCE.min(timeout);
    loop {
        // Reading is what re-arms the notification.
        let mut text = [0_u8; 256];
        let count = rustix::io::pread(&events, &mut text, 0).map_err(failed)?;
        let text = String::from_utf8_lossy(&text[..count]);
        if text.lines().any(|other| other == line) {
            return Ok(true);
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Ok(false);
        }
        // The kernel holds a second notification within 10 ms back (CGROUP_FILE_NOTIFY_MIN_INTV), and most processes stand
        // still much sooner.
        if Instant::now() < impatient_until {
            std::thread::sleep(Duration::from_micros(50));
            continue;
        }
        let remaining = Timespec::try_from(remaining).ok();
        let mut fds = [PollFd::new(&events, PollFlags::PRI)];
        match rustix::event::poll(&mut fds, remaining.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
}

/// Looks again and again, less and less often, where the kernel has no notification.
pub(super) fn poll(timeout: Duration, mut ready: impl FnMut() -> Result<bool>) -> Result<bool> {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_micros(50);
    loop {
        if ready()? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}
