//! `GET /sandboxes/{id}/flows`: network activity of a sandbox.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use sandyard_core::network::{FlowVerdict, Protocol};
use sandyard_service::{Event, EventFilter, FlowFilter};
use serde_json::Value;

use crate::listen::Shutdown;
use crate::prelude::*;
use crate::stream::{self, StreamedEvent};

/// Kinds of events that are flows.
const KINDS: [&str; 2] = ["flow", "flow_denied"];

/// Query of a list of flows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FlowQuery {
    /// Return only flows with this outcome. Default: all.
    #[param(inline)]
    verdict: Option<FlowVerdict>,
    /// Return only flows with a greater `seq`. Default: the newest flows.
    #[param(inline)]
    after: Option<BoundedInt<0, 9_007_199_254_740_991>>,
    /// Maximum number of results, 1–1000 (default 100).
    #[param(inline)]
    limit: Option<BoundedInt<1, 1000>>,
    /// Whether to stream new flows as server-sent events (default false).
    follow: Option<bool>,
}

/// Attempt of a sandbox to reach a host, or several similar attempts within a short time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FlowView {
    /// Sequence number, increasing over all sandboxes and all kinds of events.
    seq: i64,
    /// ID of the sandbox.
    sandbox_id: String,
    /// Time at which the attempt began (RFC 3339).
    at: String,
    /// Duration of the connection in milliseconds.
    duration_ms: u64,
    /// Protocol of the attempt. Null in a summary.
    protocol: Option<Protocol>,
    /// Host name that the program asked for, if known.
    name: Option<String>,
    /// IP address that was dialled, or would have been.
    address: Option<String>,
    /// Port of the remote host.
    port: Option<u16>,
    /// Outcome of the attempt.
    verdict: FlowVerdict,
    /// Machine-readable reason for a denial: `not_allowed`, `closed_address` and so on. Null unless denied.
    code: Option<String>,
    /// Explanation of a denial or failure for people.
    reason: Option<String>,
    /// Number of bytes that the sandbox sent.
    sent_bytes: u64,
    /// Number of bytes that the sandbox received.
    received_bytes: u64,
    /// Number of similar attempts that this entry stands for.
    count: u64,
    /// Whether this entry summarises attempts of all kinds that were too many to list.
    is_summary: bool,
}

/// Flow as stored in its event. A server of another version may have written it, so only the essential fields are
/// required.
#[derive(Deserialize)]
struct Recorded {
    #[serde(default)]
    duration_ms: u64,
    protocol: Option<Protocol>,
    name: Option<String>,
    address: Option<String>,
    port: Option<u16>,
    verdict: FlowVerdict,
    #[serde(default)]
    denial: Value,
    reason: Option<String>,
    failure: Option<String>,
    #[serde(default)]
    sent_bytes: u64,
    #[serde(default)]
    received_bytes: u64,
    #[serde(default = "default_count")]
    count: u64,
    #[serde(default)]
    is_summary: bool,
}

fn default_count() -> u64 {
    1
}

impl FlowView {
    /// Parses a flow from its event. Returns `None` for an unknown format.
    fn of(event: Event) -> Option<Self> {
        let flow: Recorded = serde_json::from_value(event.data).ok()?;
        Some(Self {
            seq: event.seq,
            sandbox_id: event.sandbox_id.to_string(),
            at: iso(event.at_ms),
            duration_ms: flow.duration_ms,
            protocol: flow.protocol,
            name: flow.name,
            address: flow.address,
            port: flow.port,
            verdict: flow.verdict,
            code: flow.denial["code"].as_str().map(str::to_owned),
            reason: flow.reason.or(flow.failure),
            sent_bytes: flow.sent_bytes,
            received_bytes: flow.received_bytes,
            count: flow.count,
            is_summary: flow.is_summary,
        })
    }
}

/// Network activity of a sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct FlowList {
    /// Flows, oldest first.
    flows: Vec<FlowView>,
}

/// List network activity of a sandbox
///
/// Returns the connections that a sandbox tried to make and their outcome, oldest first. Works after its deletion too,
/// and does not wake it.
///
/// With `follow=true`, or with the header `Accept: text/event-stream`, the response is a stream of server-sent events
/// named `flow` or `flow_denied`. To continue a broken stream, send the last received event ID in `Last-Event-ID`.
#[utoipa::path(
    get, path = "/sandboxes/{id}/flows", tag = "network", params(SandboxName, FlowQuery),
    responses((status = 200, description = "Network activity returned, or streamed as it happens.", content(
        (FlowList = "application/json"), (String = "text/event-stream"))))
)]
pub(crate) async fn list_flows(
    call: Call,
    name: SandboxName,
    Query(query): Query<FlowQuery>,
    shutdown: Shutdown,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let sandbox = call.inspect(&name.id).await?;
    let limit = query.limit.map_or(100, |limit| limit.0 as usize);
    if query.follow.unwrap_or(false) || stream::wants_events(&headers) {
        let filter = EventFilter {
            sandbox_id: Some(sandbox.id),
            kinds: kinds(query.verdict),
            data: verdict_filter(query.verdict),
            after_seq: query.after.map(|after| after.0),
            is_tail: query.after.is_none(),
            limit,
            ..EventFilter::default()
        };
        return stream::follow_events(call, filter, followed, &headers, shutdown).await;
    }
    let filter = FlowFilter {
        after_seq: query.after.map(|after| after.0),
        verdict: query.verdict,
        limit,
    };
    let service = call.service();
    let events = service.flows(&call.caller, sandbox.id.as_str(), filter);
    let flows = events.await?.into_iter().filter_map(FlowView::of).collect();
    Ok(Json(FlowList { flows }).into_response())
}

fn kinds(verdict: Option<FlowVerdict>) -> Vec<String> {
    let kinds = match verdict {
        None => &KINDS[..],
        Some(FlowVerdict::Denied) => &KINDS[1..],
        Some(FlowVerdict::Allowed | FlowVerdict::Failed) => &KINDS[..1],
    };
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

/// Required content of an event's data: the kind only distinguishes denied flows from others.
fn verdict_filter(verdict: Option<FlowVerdict>) -> BTreeMap<String, String> {
    let word = match verdict {
        Some(FlowVerdict::Allowed) => Some("allowed"),
        Some(FlowVerdict::Failed) => Some("failed"),
        Some(FlowVerdict::Denied) | None => None,
    };
    word.map(|word| ("verdict".to_owned(), word.to_owned()))
        .into_iter()
        .collect()
}

/// Server-sent event for a flow.
fn followed(event: Event) -> Option<StreamedEvent> {
    let (seq, kind) = (event.seq, event.kind.clone());
    let flow = FlowView::of(event)?;
    Some(StreamedEvent::new(seq, &kind, &flow))
}

#[cfg(test)]
mod tests {
    use sandyard_core::SandboxId;
    use serde_json::json;

    use super::*;

    fn view(data: Value) -> Option<Value> {
        let event = Event {
            seq: 7,
            sandbox_id: SandboxId::from_random([1; _]),
            owner: "alice".to_owned(),
            at_ms: 1_767_225_600_000,
            kind: "flow_denied".to_owned(),
            actor: "sandbox".to_owned(),
            data,
        };
        FlowView::of(event).map(|flow| serde_json::to_value(flow).unwrap())
    }

    #[test]
    fn a_summary_has_no_protocol_and_a_denial_has_a_word() {
        let summary =
            json!({"verdict": "denied", "count": 900, "reason": "too many", "is_summary": true});
        let json = view(summary).unwrap();
        assert_eq!(
            (&json["protocol"], &json["count"]),
            (&Value::Null, &json!(900))
        );
        assert_eq!(json["is_summary"], true);
        let denied = json!({
            "verdict": "denied", "protocol": "tcp", "port": 443, "name": "a.example", "reason": "no",
            "denial": {"code": "not_allowed", "target": "a.example"},
        });
        let json = view(denied).unwrap();
        assert_eq!(
            (&json["code"], &json["reason"]),
            (&json!("not_allowed"), &json!("no"))
        );
        assert_eq!(
            (&json["count"], &json["sent_bytes"]),
            (&json!(1), &json!(0))
        );
    }

    #[test]
    fn what_is_no_flow_is_left_out() {
        assert_eq!(view(json!({})), None);
        assert_eq!(view(json!({"verdict": "perhaps"})), None);
    }
}
