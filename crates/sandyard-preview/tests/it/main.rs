//! Forwarding between real sockets: a client, the proxy, and a program that may be hostile.
#![expect(
    clippy::unwrap_used,
    reason = "in a helper of tests a panic is the failure"
)]

mod exchange;
mod failure;
mod streaming;
mod support;
mod upgrade;
