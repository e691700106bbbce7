//! The escape suite: what a hostile program tries from inside a sandbox.
