//! Which system calls programs inside may make.
//!
//! The rules are data: `seccomp/policy.txt` in this crate, one line per family of calls with the reason beside it.
//! `policy` reads it, `assemble` turns it into one BPF program (a binary search over call numbers, then the argument
//! checks), [`Filter`] installs that. One program with three kinds of answers is why we assemble it ourselves: the
//! crates for it know one answer per program, and a second program would cost every system call a second run.

mod assemble;
mod filter;
mod policy;
mod syscalls;

pub use filter::{Filter, InstallError};
pub use policy::{Action, Condition, Policy, PolicyError, Rule};
