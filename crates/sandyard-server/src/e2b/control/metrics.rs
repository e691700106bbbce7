//! `GET /sandboxes/{id}/metrics` and `GET /sandboxes/metrics`.

use std::collections::BTreeMap;

use crate::prelude::*;

use sandyard_provider::UsagePoint;
use sandyard_service::Sandbox;

use super::name::{self, SandboxParam, without_client};
use super::view::cpu_count;

/// Largest number of sandboxes in one request.
const MAX_SANDBOXES: usize = 100;

/// Seconds since 1970.
type Seconds = BoundedInt<0, 253_402_300_799>;

/// The period.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MetricsQuery {
    /// Return only measurements from this time on, in seconds since 1970-01-01 UTC. Default: the oldest.
    #[param(inline)]
    start: Option<Seconds>,
    /// Return only measurements up to this time, in seconds since 1970-01-01 UTC. Default: now.
    #[param(inline)]
    end: Option<Seconds>,
}

/// Resource usage at one moment.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bMetric)]
pub(crate) struct Metric {
    /// Time of the measurement (RFC 3339).
    timestamp: String,
    /// Time of the measurement, in seconds since 1970-01-01 UTC.
    timestamp_unix: i64,
    /// CPU limit in cores, rounded up.
    cpu_count: u32,
    /// CPU usage in percent of the CPU limit.
    cpu_used_pct: f32,
    /// Memory in use, in bytes.
    mem_used: u64,
    /// Memory limit in bytes.
    mem_total: u64,
    /// Page cache in bytes.
    mem_cache: u64,
    /// Disk space in use, in bytes.
    disk_used: u64,
    /// Disk limit in bytes.
    disk_total: u64,
}

impl Metric {
    fn new(sandbox: &Sandbox, point: &UsagePoint) -> Self {
        Self {
            timestamp: iso(point.at_ms),
            timestamp_unix: point.at_ms.div_euclid(1000),
            cpu_count: cpu_count(sandbox),
            cpu_used_pct: point.cpu_percent,
            mem_used: point.memory_bytes,
            mem_total: sandbox.limits.memory_bytes,
            mem_cache: point.cache_bytes,
            disk_used: point.disk_bytes,
            disk_total: sandbox.limits.disk_bytes,
        }
    }
}

/// Get the resource usage of a sandbox
///
/// Returns the resource usage of the last hour, oldest first.
#[utoipa::path(
    get, path = "/e2b/sandboxes/{id}/metrics", tag = "e2b", params(SandboxParam, MetricsQuery),
    responses((status = 200, description = "Resource usage returned.", body = Vec<Metric>))
)]
pub(crate) async fn e2b_metrics(
    call: Call,
    target: SandboxParam,
    Query(query): Query<MetricsQuery>,
) -> Reply<Vec<Metric>> {
    let sandbox = name::existing(&call, &target.id).await?;
    let from_ms = query.start.map_or(0, |start| start.0 * 1000);
    // Until the end of that second.
    let to_ms = query.end.map_or(i64::MAX, |end| end.0 * 1000 + 999);
    if from_ms > to_ms {
        return Err(ServiceError::invalid("start", "`start` is after `end`").into());
    }
    let points = points(&call, &sandbox, from_ms, to_ms).await?;
    let metric = |point| Metric::new(&sandbox, point);
    Ok(Json(points.iter().map(metric).collect()))
}

async fn points(
    call: &Call,
    sandbox: &Sandbox,
    from_ms: i64,
    to_ms: i64,
) -> ServiceResult<Vec<UsagePoint>> {
    let id = sandbox.id.as_str();
    let service = call.service();
    let history = service.usage_history(&call.caller, id, from_ms, to_ms);
    match history.await {
        Err(error) if error.kind == ErrorKind::Unsupported => {
            let now_ms = call.service().clock().now_ms();
            match (from_ms..=to_ms).contains(&now_ms) {
                true => point_now(call, id, now_ms).await,
                false => Ok(Vec::new()),
            }
        }
        history => history,
    }
}

/// The current usage, for providers without a history; nothing if the provider does not report it either.
async fn point_now(call: &Call, id: &str, now_ms: i64) -> ServiceResult<Vec<UsagePoint>> {
    let usage = match call.service().usage(&call.caller, id).await {
        Err(error) if error.kind == ErrorKind::Unsupported => return Ok(Vec::new()),
        usage => usage?,
    };
    let Some(memory) = usage.memory_bytes else {
        return Ok(Vec::new());
    };
    let cache_bytes = usage.memory_cache_bytes.unwrap_or(0);
    Ok(vec![UsagePoint {
        at_ms: now_ms,
        // One measurement does not tell.
        cpu_percent: 0.0,
        memory_bytes: memory.saturating_sub(cache_bytes),
        cache_bytes,
        disk_bytes: usage.disk_bytes.unwrap_or(0),
    }])
}

/// The sandboxes to measure.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ManyQuery {
    /// IDs of the sandboxes, separated by commas, at most 100.
    #[param(min_length = 1, max_length = 13000)]
    sandbox_ids: String,
}

/// Latest resource usage of several sandboxes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bMetricsOfMany)]
pub(crate) struct MetricsOfMany {
    /// Resource usage by sandbox ID. Sandboxes that are not visible to you or were not measured yet are left out.
    sandboxes: BTreeMap<String, Metric>,
}

/// Get the latest usage of several sandboxes
///
/// Returns the last measured resource usage of up to 100 sandboxes.
#[utoipa::path(
    get, path = "/e2b/sandboxes/metrics", tag = "e2b", params(ManyQuery),
    responses((status = 200, description = "Resource usage returned.", body = MetricsOfMany))
)]
pub(crate) async fn e2b_metrics_of_many(
    call: Call,
    Query(query): Query<ManyQuery>,
) -> Reply<MetricsOfMany> {
    let ids: Vec<_> = query
        .sandbox_ids
        .split(',')
        .filter(|id| !id.is_empty())
        .collect();
    if ids.is_empty() || ids.len() > MAX_SANDBOXES {
        return Err(ServiceError::invalid(
            "sandbox_ids",
            format!("name 1 to {MAX_SANDBOXES} sandboxes"),
        )
        .into());
    }
    let mut sandboxes = BTreeMap::new();
    for id in ids {
        let newest = match sandbox_name(without_client(id)) {
            Ok(name) => newest(&call, name).await,
            Err(error) => Err(error),
        };
        match newest {
            Ok(Some((id, metric))) => {
                sandboxes.insert(id, metric);
            }
            Ok(None) => {}
            Err(error) if error.kind == ErrorKind::SandboxNotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Json(MetricsOfMany { sandboxes }))
}

async fn newest(call: &Call, name: &str) -> ServiceResult<Option<(String, Metric)>> {
    let sandbox = name::existing(call, name).await?;
    let points = points(call, &sandbox, 0, i64::MAX).await?;
    let metric = points.last().map(|point| Metric::new(&sandbox, point));
    Ok(metric.map(|metric| (sandbox.id.to_string(), metric)))
}
