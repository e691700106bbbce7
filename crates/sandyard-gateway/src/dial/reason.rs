//! Texts for failed connections.

use std::io::{self, ErrorKind};

/// One lower-case line, without error numbers.
pub(super) fn reason(err: &io::Error) -> String {
    match err.kind() {
        ErrorKind::ConnectionRefused => "connection refused".into(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "connection reset".into(),
        ErrorKind::UnexpectedEof => "connection closed".into(),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            "no route to host".into()
        }
        ErrorKind::TimedOut => "timed out".into(),
        ErrorKind::PermissionDenied => "forbidden by this host's firewall".into(),
        ErrorKind::AddrNotAvailable => "this host has no free address or port".into(),
        // Other errors: the text of the C library.
        kind => match err.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number).to_string(),
            None => kind.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_failures_have_words() {
        for (number, words) in [
            (111, "connection refused"),
            (104, "connection reset"),
            (113, "no route to host"),
            (101, "no route to host"),
            (110, "timed out"),
            (1, "forbidden by this host's firewall"),
        ] {
            assert_eq!(reason(&io::Error::from_raw_os_error(number)), words);
        }
        assert!(reason(&io::Error::from_raw_os_error(24)).contains("open files"));
        assert_eq!(
            reason(&ErrorKind::UnexpectedEof.into()),
            "connection closed"
        );
    }
}
