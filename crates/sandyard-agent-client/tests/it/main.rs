//! The client against agents that lie, stall and break off, against honest stand-ins, and against the real agent.

mod agent;
mod honest;
mod hostile_reply;
mod hostile_stream;
mod real_files;
mod real_process;
mod server;
mod transfer;
