//! `GET /sandboxes/{id}/metrics/history`.

use sandyard_provider::UsagePoint;

use crate::prelude::*;

/// Query of a usage history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageHistoryQuery {
    /// Return only points from this time on, in milliseconds since 1970-01-01 UTC. Default: the oldest point.
    #[param(inline)]
    from_ms: Option<BoundedInt<0, 9_007_199_254_740_991>>,
    /// Return only points up to this time, in milliseconds since 1970-01-01 UTC. Default: now.
    #[param(inline)]
    to_ms: Option<BoundedInt<0, 9_007_199_254_740_991>>,
}

/// Resource usage of a sandbox over time.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsageHistoryReply {
    /// ID of the sandbox.
    sandbox_id: String,
    /// Measurements, oldest first.
    points: Vec<UsagePoint>,
}

/// Get resource usage over time
///
/// Returns the resource usage of the last hour, one point for every five seconds in which the sandbox ran. Does not
/// wake the sandbox and does not count as activity.
#[utoipa::path(
    get, path = "/sandboxes/{id}/metrics/history", tag = "monitoring", params(SandboxName, UsageHistoryQuery),
    responses((status = 200, description = "Resource usage returned.", body = UsageHistoryReply))
)]
pub(crate) async fn get_sandbox_metrics_history(
    call: Call,
    name: SandboxName,
    Query(query): Query<UsageHistoryQuery>,
) -> Reply<UsageHistoryReply> {
    let sandbox = call.inspect(&name.id).await?;
    let from_ms = query.from_ms.map_or(0, |from| from.0);
    let to_ms = query.to_ms.map_or(i64::MAX, |to| to.0);
    let id = sandbox.id.as_str();
    let service = call.service();
    let points = service.usage_history(&call.caller, id, from_ms, to_ms);
    Ok(Json(UsageHistoryReply {
        sandbox_id: sandbox.id.to_string(),
        points: points.await?,
    }))
}
