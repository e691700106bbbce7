//! Links without Docker: a child process is the container's end, and an agent of this machine the container's.

mod egress;
mod env;
mod hostile;
mod life;
mod silence;
mod streams;
mod turns;
