//! `GET /audit`: who did what, for admins.

use axum::Json;
use axum::extract::State;
use sandyard_store::model::AuditEntry;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::Query;
use crate::time::iso;

/// Which entries.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Only what this one did.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\u0000]+$")]
    actor: Option<String>,
    /// Only those before this `seq`: the next page.
    #[param(inline)]
    before: Option<Whole<0, 9_007_199_254_740_991>>,
    /// At most so many.
    #[param(inline)]
    limit: Option<Whole<1, 1000>>,
}

/// Who did what.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditView {
    /// Counts up.
    seq: i64,
    at: String,
    actor: String,
    /// With which credentials.
    via: String,
    /// The operation.
    action: String,
    /// To what.
    target: Option<String>,
    /// How it ended: the HTTP status; 499 when the client hung up.
    status: i64,
    request_id: String,
    address: Option<String>,
}

impl From<AuditEntry> for AuditView {
    fn from(AuditEntry { seq, entry }: AuditEntry) -> Self {
        Self {
            seq,
            at: iso(entry.at_ms),
            actor: entry.actor,
            via: entry.via,
            action: entry.action,
            target: entry.target,
            status: entry.status,
            request_id: entry.request_id,
            address: entry.address,
        }
    }
}

/// How long the list waits for entries that are not written yet.
const FLUSH_WITHIN: std::time::Duration = std::time::Duration::from_secs(3);

/// Part of the audit.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// Newest first.
    entries: Vec<AuditView>,
}

/// Tells who did what, newest first.
#[utoipa::path(
    get, path = "/audit", operation_id = "list_audit", tag = "accounts",
    params(AuditQuery),
    responses((status = 200, description = "Entries.", body = AuditList))
)]
pub(crate) async fn list_audit(
    State(app): State<App>,
    Query(query): Query<AuditQuery>,
) -> Result<Json<AuditList>, ApiError> {
    bounds::optional_text("actor", query.actor.as_deref(), 1, 255)?;
    // The list includes requests that ended a moment before, unless the store does not take their entries.
    let _ = tokio::time::timeout(FLUSH_WITHIN, app.audit().flush()).await;
    let limit = query.limit.map_or(100, |limit| limit.0 as usize);
    let entries = app
        .store()
        .audit(query.actor.as_deref(), query.before.map(|seq| seq.0), limit)
        .await
        .map_err(sandyard_service::ServiceError::from)?;
    let entries = entries.into_iter().map(AuditView::from).collect();
    Ok(Json(AuditList { entries }))
}
