//! What can be done with sandboxes, snapshots, volumes and secrets: one verb per file.

mod change;
mod cleanup;
mod command;
mod create;
mod delete;
mod diff;
mod events;
mod flows;
mod fork;
mod inspect;
mod list;
mod live;
mod live_for;
mod logs;
mod may_wake;
mod mounts;
mod network;
mod output_buffer;
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
