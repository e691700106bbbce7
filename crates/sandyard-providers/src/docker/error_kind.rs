//! Classifies errors of the daemon.

use sandyard_provider::ProviderErrorKind;

/// The kind of a failed answer. Some come from a proxy before the daemon.
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
        500 if is_containerd_down(message) => Unavailable,
        _ => Failed,
    }
}

/// Whether something is full.
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

/// Whether the daemon answers but containerd does not, for example while it restarts.
fn is_containerd_down(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    // A message of a program in a container says nothing about containerd.
    let is_about_runtime = message.contains("oci runtime");
    let is_disconnected = [
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
    is_disconnected && !is_about_runtime
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_kinds() {
        use ProviderErrorKind::*;
        for (status, expected) in [
            (400, Invalid),
            (404, NotFound),
            (409, Conflict),
            (500, Failed),
            (429, NoCapacity),
            (502, Unavailable),
            (503, Unavailable),
            (504, TimedOut),
        ] {
            assert_eq!(kind(status, "because"), expected, "{status}");
        }
        assert_eq!(kind(500, "write /x: no space left on device"), NoCapacity);
    }

    #[test]
    fn a_daemon_without_containerd_is_unavailable() {
        for text in [
            "connection error: desc = \"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused\": unavailable",
            "rpc error: code = Unavailable desc = error reading from server: EOF",
            "failed to start shim: ttrpc: closed: unknown",
        ] {
            assert_eq!(kind(500, text), ProviderErrorKind::Unavailable, "{text}");
        }
        let program = "OCI runtime create failed: exec: \"containerd.sock\": not found: unknown";
        assert_eq!(kind(500, program), ProviderErrorKind::Failed);
    }
}
