//! The suite's teeth: where there is no sandbox, or a weak one, it must say so.

mod greeting_server;
mod on_host;
mod plants;
mod probe;
mod resources;
mod weak_sandbox;
