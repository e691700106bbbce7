//! The program as a person uses it. Works as root and as an ordinary user.

mod run;
mod server;
mod standalone;
mod template;
mod test_env;
