//! A sandbox in a few words: its status, and what happens to it next.

use sandyard_client::SandboxInfo;

use crate::output::until;

/// The status, with `stopped` told apart from `paused`.
pub(crate) fn status(sandbox: &SandboxInfo) -> &str {
    match sandbox.status.as_str() {
        "paused" if sandbox.is_stopped => "stopped",
        status => status,
    }
}

/// What happens to the sandbox unless it is used, for example `pauses in 58m`; empty if nothing does.
pub(super) fn next_change(sandbox: &SandboxInfo) -> String {
    let action = match sandbox.timeout_action.as_str() {
        "delete" => "deleted",
        "stop" => "stops",
        _ => "pauses",
    };
    match (&sandbox.expires_at, &sandbox.deletes_at) {
        (Some(at), _) => format!("{action} in {}", until(at)),
        (None, Some(at)) => format!("deleted in {}", until(at)),
        (None, None) => String::new(),
    }
}
