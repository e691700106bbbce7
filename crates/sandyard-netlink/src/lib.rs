//! Speaking to the kernel about networks: messages written, sent, and their answers read.
//!
//! | to                                      | read          |
//! |-----------------------------------------|---------------|
//! | write messages and attributes           | `message.rs`  |
//! | send them and read what they came to    | `exchange.rs` |
//! | raise a link, add an address or a route | `route.rs`    |
//! | add tables, chains and rules            | `nftables.rs` |
//!
//! A message is a header, a fixed part of its family and attributes: length, kind and value, each padded to four bytes
//! (netlink(7)).
#![forbid(unsafe_code)]

mod exchange;
mod message;
pub mod nftables;
pub mod route;
