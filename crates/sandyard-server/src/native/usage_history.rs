//! `GET /sandboxes/{id}/metrics/history`.

use axum::Json;
use axum::extract::State;
use sandyard_provider::UsagePoint;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::Whole;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};

/// Which part of the history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageHistoryQuery {
    /// Only from this moment on, in milliseconds since 1970.
    #[param(inline)]
    from_ms: Option<Whole<0, 9_007_199_254_740_991>>,
    /// Only up to this moment, in milliseconds since 1970.
    #[param(inline)]
    to_ms: Option<Whole<0, 9_007_199_254_740_991>>,
}

/// What a sandbox used over some seconds.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsagePointView {
    /// When, in milliseconds since 1970.
    at_ms: i64,
    /// Processor time used since the point before, in percent of what its limit allows.
    cpu_percent: f32,
    /// Memory in bytes, without page cache.
    memory_bytes: u64,
    /// Page cache in bytes.
    cache_bytes: u64,
    /// Bytes written on top of the template.
    disk_bytes: u64,
}

impl From<UsagePoint> for UsagePointView {
    fn from(point: UsagePoint) -> Self {
        Self {
            at_ms: point.at_ms,
            cpu_percent: point.cpu_percent,
            memory_bytes: point.memory_bytes,
            cache_bytes: point.cache_bytes,
            disk_bytes: point.disk_bytes,
        }
    }
}

/// What a sandbox used of late.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsageHistoryReply {
    sandbox_id: String,
    /// Oldest first.
    points: Vec<UsagePointView>,
}

/// Tells what a sandbox used over the last hour, a point every five seconds that it ran. Wakes nothing, and is no activity.
#[utoipa::path(
    get, path = "/sandboxes/{id}/metrics/history", operation_id = "get_sandbox_metrics_history", tag = "monitoring",
    params(SandboxName, UsageHistoryQuery),
    responses((status = 200, description = "What it used.", body = UsageHistoryReply))
)]
pub(crate) async fn get_sandbox_metrics_history(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<UsageHistoryQuery>,
) -> Result<Json<UsageHistoryReply>, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    let from_ms = query.from_ms.map_or(0, |from| from.0);
    let to_ms = query.to_ms.map_or(i64::MAX, |to| to.0);
    let id = sandbox.id.as_str();
    let points = app.service().usage_history(&caller, id, from_ms, to_ms);
    Ok(Json(UsageHistoryReply {
        sandbox_id: sandbox.id.to_string(),
        points: points.await?.into_iter().map(Into::into).collect(),
    }))
}
