//! The life of sandboxes over a real store and a provider in memory.

mod clock;
mod crash;
mod create;
mod fallback;
mod fixed_time;
mod flows;
mod harness;
mod idle;
mod multi_provider;
mod network;
mod outage;
mod providers;
mod reconcile;
mod renamed_locations;
mod replicas;
mod rights;
mod sealed;
mod secrets;
mod snapshots;
mod usage;
mod volumes;
mod wake;
