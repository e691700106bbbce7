//! The providers: embedded engine, and another node of the same installation.
#![forbid(unsafe_code)]
