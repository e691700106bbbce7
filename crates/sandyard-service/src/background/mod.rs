//! What happens in the background: timers, reconcilers, heartbeats, health checks.

pub(crate) mod flows;
pub(crate) mod health;
pub(crate) mod reconcile;

mod clock_jumps;
mod failed_timers;
mod flow_quota;
mod nodes;
mod orphans;
mod reconcile_table;
mod run;
mod scheduler;
