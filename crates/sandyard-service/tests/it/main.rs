//! The life of sandboxes over a real store and a provider in memory.

mod crash;
mod create;
mod fixed_time;
mod flows;
mod harness;
mod idle;
mod network;
mod reconcile;
mod replicas;
mod sealed;
mod secrets;
mod snapshots;
mod usage;
mod volumes;
mod wake;
