//! The way in to a port: addresses, forwarding, pages.
#![forbid(unsafe_code)]
