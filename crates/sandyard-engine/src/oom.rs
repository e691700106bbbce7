//! Makes the kernel end sandboxes before the server and the launcher when the host is out of memory.
//!
//! Lowering a score takes `CAP_SYS_RESOURCE` on the host. A score that was raised by a process with that capability cannot be
//! lowered again by one without it (`__set_oom_adj` in the kernel's `fs/proc/base.c`), so nothing inside a sandbox undoes it.
//! Without the capability a sandbox can lower its score to that of the launcher, and no further.

use std::fs;

/// Score of a sandbox's first process. Its commands have 500, so within a sandbox the agent ends last.
const SANDBOX_SCORE: i32 = 250;
/// Score of the server and the launcher.
const OWN_SCORE: i32 = -500;

/// Makes the kernel end a sandbox's first process, and all it starts, before programs of the host.
pub(crate) fn prefer(pid: i32) {
    // Best effort: the kernel may not have this file.
    let _ = fs::write(
        format!("/proc/{pid}/oom_score_adj"),
        SANDBOX_SCORE.to_string(),
    );
}

/// Makes this process one of the last to be ended, where that is permitted. Keeps a lower score that a service manager has set.
pub fn protect_process() {
    const PATH: &str = "/proc/self/oom_score_adj";
    let now: Option<i32> = fs::read_to_string(PATH)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    if now.is_some_and(|now| now > OWN_SCORE) {
        // Fails without CAP_SYS_RESOURCE; `sandyard doctor` reports that.
        let _ = fs::write(PATH, OWN_SCORE.to_string());
    }
}
