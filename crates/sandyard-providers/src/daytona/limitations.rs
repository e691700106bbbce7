//! What a sandbox at Daytona has not got, in words.

use jiff::Timestamp;
use sandyard_core::Limits;

use super::model::Sandbox;
use crate::requested_limits;

/// All of it: `asked` is what its maker wanted of memory, processors and disk.
pub(super) fn of(sandbox: &Sandbox, asked: Option<&str>, has: &Limits) -> Vec<String> {
    // A snapshot decides about the limits of its sandboxes.
    let mut limitations = asked.map_or_else(Vec::new, |asked| {
        requested_limits::limitations(asked, has, "snapshot")
    });
    limitations.extend(sandbox.auto_destroy_at.as_deref().and_then(bounded_life));
    limitations
}

/// What is said of one that Daytona destroys by itself, whatever it does.
fn bounded_life(until: &str) -> Option<String> {
    let until = until.parse::<Timestamp>().ok()?;
    Some(format!(
        "Daytona destroys it with all of its files at {until:.0}: its account bounds how long sandboxes live"
    ))
}
