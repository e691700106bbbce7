//! Links without Docker: a child process is the container's end, and an agent runs on this host.

mod egress;
mod env;
mod hostile;
mod lifecycle;
mod silence;
mod slots;
mod streams;
