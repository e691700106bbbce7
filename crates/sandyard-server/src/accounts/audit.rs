//! `GET /audit`: the audit log, for admins.

use sandyard_store::model::AuditEntry;

use crate::prelude::*;

/// Query of a list of audit entries.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Return only entries of this user.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\u0000]+$")]
    actor: Option<String>,
    /// Return only entries with a smaller `seq`. Default: the newest entries.
    #[param(inline)]
    before: Option<BoundedInt<0, 9_007_199_254_740_991>>,
    /// Maximum number of results, 1–1000 (default 100).
    #[param(inline)]
    limit: Option<BoundedInt<1, 1000>>,
}

/// Entry of the audit log.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditView {
    /// Sequence number, increasing.
    seq: i64,
    /// Time of the request (RFC 3339).
    at: String,
    /// User who made the request.
    actor: String,
    /// Kind and ID of the credentials.
    via: String,
    /// ID of the operation, for example `create_sandbox`.
    action: String,
    /// Sandbox or other resource that the operation acted on, if any.
    target: Option<String>,
    /// HTTP status of the response; 499 if the client disconnected first.
    status: i64,
    /// ID of the request.
    request_id: String,
    /// IP address of the client, if known.
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

/// Maximum time to wait for entries that are not written yet.
const FLUSH_WITHIN: std::time::Duration = std::time::Duration::from_secs(3);

/// Entries of the audit log.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// Entries, newest first.
    entries: Vec<AuditView>,
}

/// List audit entries
///
/// Returns who did what, newest first. To read older entries, set `before` to the smallest `seq` of the response.
/// Requires the scope `admin`.
#[utoipa::path(
    get, path = "/audit", tag = "accounts", params(AuditQuery),
    responses((status = 200, description = "Audit entries returned.", body = AuditList))
)]
pub(crate) async fn list_audit(call: Call, Query(query): Query<AuditQuery>) -> Reply<AuditList> {
    bounds::optional_text("actor", query.actor.as_deref(), 1, 255)?;
    // The list includes requests that ended just before, unless the store rejects their entries.
    let _ = tokio::time::timeout(FLUSH_WITHIN, call.app.audit().flush()).await;
    let limit = query.limit.map_or(100, |limit| limit.0 as usize);
    let entries = call
        .app
        .store()
        .audit(query.actor.as_deref(), query.before.map(|seq| seq.0), limit)
        .await
        .map_err(sandyard_service::ServiceError::from)?;
    let entries = entries.into_iter().map(AuditView::from).collect();
    Ok(Json(AuditList { entries }))
}
