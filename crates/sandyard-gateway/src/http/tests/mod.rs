//! Over real connections: a program, the gateway between, and a site with its own authority.

mod bodies;
mod endings;
mod env;
mod hosts;
mod plain;
mod redaction;
mod rules;
mod secrets;
mod site;
mod trust;
mod upgrades;
