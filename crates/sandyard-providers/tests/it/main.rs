//! The providers against the real engine, and a node in front of it. Needs root.

mod embedded;
mod node;
mod server;
mod volumes;
mod yard;
