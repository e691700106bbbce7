//! The client against servers that behave, stumble and misbehave. Each speaks real HTTP over a real socket.

mod create;
mod errors;
mod exec;
mod files;
mod follow;
mod network;
mod script;
