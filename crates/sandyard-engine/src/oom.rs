//! Whom the kernel ends first when the host is out of memory: sandboxes before the server and the launcher.
//!
//! Lowering a score takes `CAP_SYS_RESOURCE` on the host. A score that was raised by a process with that capability cannot be
//! lowered again by one without it (`__set_oom_adj` in the kernel's `fs/proc/base.c`), so nothing inside a sandbox undoes it.
//! Without the capability a sandbox can go back to the score that the launcher had, and no lower.

use std::fs;

/// First process of a sandbox. Its commands have 500, so within a sandbox the agent is the last to go.
const SANDBOX_SCORE: i32 = 250;
/// Server and launcher.
const OWN_SCORE: i32 = -500;

/// Makes a sandbox's first process, and all it starts, go before programs of the host.
pub(crate) fn prefer(pid: i32) {
    // The kernel may lack it; a sandbox that is not preferred is still a sandbox.
    let _ = fs::write(
        format!("/proc/{pid}/oom_score_adj"),
        SANDBOX_SCORE.to_string(),
    );
}

/// Makes this process one of the last to go, where that is permitted. A service manager may have chosen an even lower score.
pub fn protect_process() {
    const PATH: &str = "/proc/self/oom_score_adj";
    let now: Option<i32> = fs::read_to_string(PATH)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    if now.is_some_and(|now| now > OWN_SCORE) {
        // Refused without CAP_SYS_RESOURCE; `sandyard doctor` tells.
        let _ = fs::write(PATH, OWN_SCORE.to_string());
    }
}
