//! What the service holds in memory. Nothing here knows [`Service`](crate::Service).

pub(crate) mod activity;
pub(crate) mod clock_watch;
pub(crate) mod health_checks;
pub(crate) mod history;
pub(crate) mod locks;
pub(crate) mod node_setup;
pub(crate) mod orphan_sightings;
pub(crate) mod provider_registry;
pub(crate) mod pushed_grants;
pub(crate) mod recorders;
pub(crate) mod status_changes;
