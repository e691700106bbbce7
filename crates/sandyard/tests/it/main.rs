//! The program as a person uses it. Works as root and as an ordinary user.

mod run;
mod template;
mod yard;
