//! `GET /sandboxes/{id}/flows`: what a sandbox tried to reach, and what became of it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use sandyard_core::network::{FlowVerdict, Protocol};
use sandyard_service::{Event, EventFilter, FlowFilter};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::Whole;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::listen::Shutdown;
use crate::stream::{self, StreamedEvent};
use crate::time::iso;

/// The kinds of events that are flows.
const KINDS: [&str; 2] = ["flow", "flow_denied"];

/// Which flows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FlowQuery {
    /// Only those that ended so.
    #[param(inline)]
    verdict: Option<VerdictWord>,
    /// Only those after this `seq`; left out: the newest.
    #[param(inline)]
    after: Option<Whole<0, 9_007_199_254_740_991>>,
    /// At most so many.
    #[param(inline)]
    limit: Option<Whole<1, 1000>>,
    /// Whether to go on with flows as they happen, as server-sent events.
    follow: Option<bool>,
}

/// What became of an attempt to reach something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FlowVerdict)]
pub(crate) enum VerdictWord {
    /// It went out.
    Allowed,
    /// It did not, for the reason given.
    Denied,
    /// It was allowed, and the other side could not be reached.
    Failed,
}

impl From<VerdictWord> for FlowVerdict {
    fn from(word: VerdictWord) -> Self {
        match word {
            VerdictWord::Allowed => Self::Allowed,
            VerdictWord::Denied => Self::Denied,
            VerdictWord::Failed => Self::Failed,
        }
    }
}

impl From<FlowVerdict> for VerdictWord {
    fn from(verdict: FlowVerdict) -> Self {
        match verdict {
            FlowVerdict::Allowed => Self::Allowed,
            FlowVerdict::Denied => Self::Denied,
            FlowVerdict::Failed => Self::Failed,
        }
    }
}

/// What an attempt spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FlowProtocol)]
pub(crate) enum ProtocolWord {
    /// A connection.
    Tcp,
    /// A datagram, other than a look-up.
    Udp,
    /// A look-up of a name.
    Dns,
    /// A ping or another control message.
    Icmp,
    /// Anything else.
    Other,
}

impl From<Protocol> for ProtocolWord {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Tcp => Self::Tcp,
            Protocol::Udp => Self::Udp,
            Protocol::Dns => Self::Dns,
            Protocol::Icmp => Self::Icmp,
            Protocol::Other => Self::Other,
        }
    }
}

/// One attempt to reach something, or several alike in a short time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FlowView {
    /// Counts up over all sandboxes and all that happens to them.
    seq: i64,
    sandbox_id: String,
    /// When it began.
    at: String,
    duration_ms: u64,
    /// None in a summary.
    protocol: Option<ProtocolWord>,
    /// The name it was for, where one is known.
    name: Option<String>,
    /// The address that was dialled, or meant.
    address: Option<String>,
    port: Option<u16>,
    verdict: VerdictWord,
    /// Why it was denied, in a word for programs: `not_allowed`, `closed_address`, …
    code: Option<String>,
    /// Why it was denied or failed, for people.
    reason: Option<String>,
    /// Bytes from the sandbox.
    sent_bytes: u64,
    /// Bytes to it.
    received_bytes: u64,
    /// How many attempts alike this stands for.
    count: u64,
    /// Whether it stands for attempts of all kinds, which were too many to tell each of them.
    is_summary: bool,
}

/// A flow as its event holds it. Another server may have written it, so only what everything needs must be there.
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
    #[serde(default = "one")]
    count: u64,
    #[serde(default)]
    is_summary: bool,
}

fn one() -> u64 {
    1
}

impl FlowView {
    /// Reads a flow out of its event; none: it is no flow of a form we know.
    fn of(event: Event) -> Option<Self> {
        let flow: Recorded = serde_json::from_value(event.data).ok()?;
        Some(Self {
            seq: event.seq,
            sandbox_id: event.sandbox_id.to_string(),
            at: iso(event.at_ms),
            duration_ms: flow.duration_ms,
            protocol: flow.protocol.map(Into::into),
            name: flow.name,
            address: flow.address,
            port: flow.port,
            verdict: flow.verdict.into(),
            code: flow.denial["code"].as_str().map(str::to_owned),
            reason: flow.reason.or(flow.failure),
            sent_bytes: flow.sent_bytes,
            received_bytes: flow.received_bytes,
            count: flow.count,
            is_summary: flow.is_summary,
        })
    }
}

/// What a sandbox tried to reach.
#[derive(Serialize, ToSchema)]
pub(crate) struct FlowList {
    /// Oldest first.
    flows: Vec<FlowView>,
}

/// Tells what a sandbox tried to reach and what became of it, also after its deletion.
///
/// With `follow=true`, or when the client accepts `text/event-stream`, flows come as they happen, each named `flow` or
/// `flow_denied`; `Last-Event-ID` goes on after one.
#[utoipa::path(
    get, path = "/sandboxes/{id}/flows", operation_id = "list_flows", tag = "network",
    params(SandboxName, FlowQuery),
    responses((status = 200, description = "What it tried to reach.", content(
        (FlowList = "application/json"), (String = "text/event-stream"))))
)]
pub(crate) async fn list_flows(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<FlowQuery>,
    shutdown: Shutdown,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    let limit = query.limit.map_or(100, |limit| limit.0 as usize);
    if query.follow.unwrap_or(false) || stream::wants_events(&headers) {
        let filter = EventFilter {
            sandbox_id: Some(sandbox.id),
            kinds: kinds(query.verdict),
            data: words(query.verdict),
            after_seq: query.after.map(|after| after.0),
            is_tail: query.after.is_none(),
            limit,
            ..EventFilter::default()
        };
        return stream::follow_events(app, caller, filter, followed, &headers, shutdown).await;
    }
    let filter = FlowFilter {
        after_seq: query.after.map(|after| after.0),
        verdict: query.verdict.map(Into::into),
        limit,
    };
    let events = app.service().flows(&caller, sandbox.id.as_str(), filter);
    let flows = events.await?.into_iter().filter_map(FlowView::of).collect();
    Ok(Json(FlowList { flows }).into_response())
}

fn kinds(verdict: Option<VerdictWord>) -> Vec<String> {
    let kinds = match verdict {
        None => &KINDS[..],
        Some(VerdictWord::Denied) => &KINDS[1..],
        Some(VerdictWord::Allowed | VerdictWord::Failed) => &KINDS[..1],
    };
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

/// What must be in an event's data: kinds tell only what was denied from all else.
fn words(verdict: Option<VerdictWord>) -> BTreeMap<String, String> {
    let word = match verdict {
        Some(VerdictWord::Allowed) => Some("allowed"),
        Some(VerdictWord::Failed) => Some("failed"),
        Some(VerdictWord::Denied) | None => None,
    };
    word.map(|word| ("verdict".to_owned(), word.to_owned()))
        .into_iter()
        .collect()
}

/// A flow for those who follow.
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
        let shown = view(summary).unwrap();
        assert_eq!(
            (&shown["protocol"], &shown["count"]),
            (&Value::Null, &json!(900))
        );
        assert_eq!(shown["is_summary"], true);
        let denied = json!({
            "verdict": "denied", "protocol": "tcp", "port": 443, "name": "a.example", "reason": "no",
            "denial": {"code": "not_allowed", "target": "a.example"},
        });
        let shown = view(denied).unwrap();
        assert_eq!(
            (&shown["code"], &shown["reason"]),
            (&json!("not_allowed"), &json!("no"))
        );
        assert_eq!(
            (&shown["count"], &shown["sent_bytes"]),
            (&json!(1), &json!(0))
        );
    }

    #[test]
    fn what_is_no_flow_is_left_out() {
        assert_eq!(view(json!({})), None);
        assert_eq!(view(json!({"verdict": "perhaps"})), None);
    }
}
