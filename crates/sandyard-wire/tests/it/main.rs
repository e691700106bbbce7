//! The crate from outside: messages against their JSON, frames against any cutting of their bytes.

mod frames;
mod messages;
