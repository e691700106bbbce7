//! What the daemon's failures mean.

use sandyard_provider::ProviderErrorKind;

/// What an answer that is a failure means. Some are none of the daemon's own, but of a proxy before it.
pub(super) fn kind(status: u16, message: &str) -> ProviderErrorKind {
    use ProviderErrorKind::{
        Conflict, Failed, Invalid, NoCapacity, NotFound, TimedOut, Unavailable,
    };
    match status {
        _ if is_full(message) => NoCapacity,
        400 => Invalid,
        404 => NotFound,
        409 => Conflict,
        429 => NoCapacity,
        408 | 504 => TimedOut,
        502 | 503 => Unavailable,
        500 if is_half_there(message) => Unavailable,
        _ => Failed,
    }
}

/// Says whether it is for want of room that something failed.
pub(super) fn is_full(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "no space left on device",
        "disk quota exceeded",
        "cannot allocate memory",
        "resource temporarily unavailable",
        "too many open files",
    ]
    .iter()
    .any(|text| message.contains(text))
}

/// Says whether the daemon is there and what runs its containers is not, as while containerd starts again.
fn is_half_there(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    // What a program in a container says is nothing about containerd.
    let is_runtimes = message.contains("oci runtime");
    let is_away = [
        "containerd.sock",
        "connection refused",
        "transport: ",
        "transport is closing",
        "client connection is closing",
        "code = unavailable",
        "ttrpc: closed",
    ]
    .iter()
    .any(|text| message.contains(text));
    is_away && !is_runtimes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_kinds() {
        use ProviderErrorKind::*;
        for (status, meant) in [
            (400, Invalid),
            (404, NotFound),
            (409, Conflict),
            (500, Failed),
            (429, NoCapacity),
            (502, Unavailable),
            (503, Unavailable),
            (504, TimedOut),
        ] {
            assert_eq!(kind(status, "because"), meant, "{status}");
        }
        assert_eq!(kind(500, "write /x: no space left on device"), NoCapacity);
    }

    #[test]
    fn a_daemon_without_its_containerd_may_be_asked_again() {
        for away in [
            "connection error: desc = \"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused\": unavailable",
            "rpc error: code = Unavailable desc = error reading from server: EOF",
            "failed to start shim: ttrpc: closed: unknown",
        ] {
            assert_eq!(kind(500, away), ProviderErrorKind::Unavailable, "{away}");
        }
        let program = "OCI runtime create failed: exec: \"containerd.sock\": not found: unknown";
        assert_eq!(kind(500, program), ProviderErrorKind::Failed);
    }
}
