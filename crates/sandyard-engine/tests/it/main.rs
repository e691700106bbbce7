//! The engine against the real kernel. Needs root; the rootless cases change to an ordinary user.

mod adoption;
mod bad_input;
mod concurrency;
mod contained;
mod faults;
mod gateway;
mod idle_exit;
mod labels;
mod lifecycle;
mod limits;
mod network;
mod pool;
mod replace;
mod rootless;
mod sampling;
mod snapshot;
mod start_hook;
mod test_env;
mod tools;
mod trust;
mod view;
mod volumes;
