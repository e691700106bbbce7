//! Every route on one page, and the table tests are made from.

use crate::need::Need;

/// One route, as the tenant matrix sees it.
#[derive(Clone, Debug)]
pub struct RouteEntry {
    /// Its method.
    pub method: String,
    /// Its path, with `{names}`.
    pub path: String,
    /// What it asks of its caller.
    pub need: Need,
}
