//! The limitations of a sandbox at Daytona.

use jiff::Timestamp;
use sandyard_core::Limits;

use super::model::Sandbox;
use crate::requested_limits;

/// All limitations; `requested` are the requested limits.
pub(super) fn of(sandbox: &Sandbox, requested: Option<&str>, actual: &Limits) -> Vec<String> {
    // A snapshot decides the limits of its sandboxes.
    let mut limitations = requested.map_or_else(Vec::new, |requested| {
        requested_limits::limitations(requested, actual, "snapshot")
    });
    limitations.extend(sandbox.auto_destroy_at.as_deref().and_then(max_lifespan));
    limitations
}

/// The limitation of a sandbox that Daytona destroys at a fixed time.
fn max_lifespan(until: &str) -> Option<String> {
    let until = until.parse::<Timestamp>().ok()?;
    Some(format!(
        "Daytona destroys it with all of its files at {until:.0}: the account has a maximum lifespan of sandboxes"
    ))
}
