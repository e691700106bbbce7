//! The program as a person uses it. Works as root and as an ordinary user.

mod alone;
mod run;
mod server;
mod template;
mod yard;
