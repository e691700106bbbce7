//! What every request goes through, outermost first:
//!
//! `forwarded` → `request_id` → `access_log` → (previews by host) → envelope → `panics` → refusal of bad request ids → the route, which
//! stands behind its `gate`: credentials, scope, `rate_limit`, a place among those at work, `audit`.

pub(crate) mod access_log;
pub(crate) mod forwarded;
pub(crate) mod gate;
pub(crate) mod held_answer;
pub(crate) mod open_listener;
pub(crate) mod panics;
pub(crate) mod request_id;
