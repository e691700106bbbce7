//! Typed client of the native dialect.
#![forbid(unsafe_code)]
