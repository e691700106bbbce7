//! The audit of a call: as of a request of its own, for that is what it does.

use axum::http::request::Parts;
use sandyard_store::model::NewAuditEntry;

use super::tool::{Effect, Tool};
use crate::audit::{HUNG_UP, Note};
use crate::call::Call;
use crate::listen::Listener;
use crate::middleware::request_id::RequestId;

/// Begins an entry for what may change something; the client may hang up or cancel before its end.
pub(super) fn begin(call: &Call, parts: &Parts, tool: &Tool) -> Option<Note> {
    if tool.effect == Effect::Reads {
        return None;
    }
    let id = parts.extensions.get::<RequestId>();
    let listener = parts.extensions.get::<Listener>();
    let entry = NewAuditEntry {
        at_ms: call.service().clock().now_ms(),
        actor: call.caller.name.clone(),
        via: call.caller.via.clone(),
        action: format!("mcp {}", tool.name),
        target: None,
        status: HUNG_UP.into(),
        request_id: id.map_or_else(String::new, |id| id.0.clone()),
        address: listener.map(|listener| listener.peer.ip().to_string()),
    };
    Some(Note::begin(call.app.audit(), entry))
}
