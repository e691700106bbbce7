//! One verb a file.

mod cleanup;
mod command;
mod create;
mod delete;
mod diff;
mod events;
mod flows;
mod fork;
mod inspect;
mod kept_output;
mod list;
mod live;
mod live_for;
mod logs;
mod mounts;
mod network;
mod pause;
mod port;
mod secrets;
mod snapshot;
mod stop;
mod templates;
mod timeout;
mod unknown;
mod usage;
mod volumes;
mod wake;

pub use live::Live;
pub use live_for::{NotRunning, WakePolicy};
pub use logs::LogFollower;
pub use unknown::{UnknownInstance, UnknownInstances};
pub use volumes::VOLUME_TOKEN_PREFIX;
