//! The life of sandboxes over a real store and a provider in memory.

mod crash;
mod create;
mod harness;
mod idle;
mod reconcile;
mod replicas;
mod snapshots;
mod wake;
