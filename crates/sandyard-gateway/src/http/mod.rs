//! Requests that are changed on the way.
//!
//! | file | holds |
//! |---|---|
//! | `encrypted`, `plain` | the two ways in: requests over TLS, and without |
//! | `certificates` | certificates that the installation's own authority signs for programs |
//! | `trust`, `tls` | the roots trusted outside; TLS with both sides |
//! | `connection`, `versions`, `upstream`, `state` | a program's connection and one to the other side, tied together |
//! | `exchange`, `host`, `readdress`, `answer` | one request: checked, changed, passed on, or refused |
//! | `change`, `swap` | headers that rules set, secrets in the place of placeholders |
//! | `hide`, `hiding_body`, `forms`, `swap_stream` | placeholders in the place of secrets, on the way back |
//! | `expect`, `late`, `upgrade` | bodies that wait to be asked for; bodies that break off; WebSockets |
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

/// What became of a connection whose requests were looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpFailure {
    /// A request was for another host, or for one that is denied.
    #[error("{0}")]
    Denied(Denial),
    /// TLS could not be agreed on with one of the sides, so that nothing was asked.
    #[error("{0}")]
    Unreachable(String),
    /// The other side's answer is no good, or the connection broke.
    #[error("{0}")]
    Failed(String),
}
