//! The engine against the real kernel. Needs root; the rootless cases drop to an ordinary user by themselves.

mod adoption;
mod bad_input;
mod faults;
mod labels;
mod lifecycle;
mod limits;
mod many;
mod pool;
mod rootless;
mod snapshot;
mod view;
mod yard;
