//! Requests that the gateway inspects and changes.
//!
//! | file | holds |
//! |---|---|
//! | `encrypted`, `plain` | requests over TLS, and without |
//! | `certificates` | certificates that the installation's own authority signs for programs |
//! | `trust`, `tls` | trusted roots; TLS with both sides |
//! | `sandbox_ca` | certificates of the operator that sandboxes trust |
//! | `connection`, `versions`, `upstream`, `state` | a program's connection and the one to the remote side |
//! | `exchange`, `host`, `request_target`, `answer` | one request: checked, changed, forwarded, or refused |
//! | `request_changes`, `replace` | headers that rules set, and secrets in place of placeholders |
//! | `redact`, `redacting_body`, `encodings`, `replace_stream` | placeholders in place of secrets, in responses |
//! | `expect`, `delayed_failure`, `upgrade` | `Expect: 100-continue`; aborted bodies; WebSockets |
//!
//! No byte of a secret is logged, shown by [`Debug`] or part of an error, and the keys of TLS are written nowhere.

mod answer;
mod certificates;
mod connection;
mod delayed_failure;
mod encodings;
mod encrypted;
mod exchange;
mod expect;
mod host;
mod plain;
mod redact;
mod redacting_body;
mod replace;
mod replace_stream;
mod request_changes;
mod request_target;
mod sandbox_ca;
mod state;
#[cfg(test)]
mod tests;
mod tls;
mod trust;
mod upgrade;
mod upstream;
mod versions;

use sandyard_core::network::Denial;

pub(crate) use encrypted::carry_tls;
pub(crate) use exchange::NameJudge;
pub(crate) use host::Host;
pub(crate) use plain::carry_plain;
pub(crate) use request_changes::changes;
pub(crate) use tls::Tls;

/// Why a connection with inspected requests failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpFailure {
    /// A request was for another host, or for a denied one.
    #[error("{0}")]
    Denied(Denial),
    /// The TLS handshake with one side failed, before any request.
    #[error("{0}")]
    Unreachable(String),
    /// The remote side's answer is invalid, or the connection broke.
    #[error("{0}")]
    Failed(String),
}
