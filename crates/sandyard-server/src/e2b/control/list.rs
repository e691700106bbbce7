//! `GET /v2/sandboxes` and `GET /sandboxes`.

use axum::extract::RawQuery;
use axum::http::{HeaderName, HeaderValue};
use sandyard_core::SandboxStatus;
use sandyard_service::SandboxFilter;

use super::view::{ListedView, Names};
use super::{metadata, pages, template_name};
use crate::extract::decode_query;
use crate::prelude::*;

/// Number of running sandboxes among the selected ones.
const TOTAL_RUNNING: HeaderName = HeaderName::from_static("x-total-running");

/// Order of a list by creation time: `asc` oldest first, `desc` newest first.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bOrder)]
pub(crate) enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// The sandboxes to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListQuery {
    /// Return only sandboxes with this metadata: `name=value&…`, URL-encoded as one parameter.
    metadata: Option<String>,
    /// Return only sandboxes created from this template.
    #[param(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    template: Option<String>,
    /// Return only sandboxes created at this time or later (RFC 3339).
    #[param(format = DateTime)]
    started_after: Option<String>,
    /// Order by creation time: `asc` or `desc` (default).
    #[param(inline)]
    order: Option<Order>,
    /// Maximum number of results, 1–100 (default 100).
    #[param(inline)]
    limit: Option<BoundedInt<1, 100>>,
    /// Position to continue from: the `x-next-token` of the previous page.
    #[param(max_length = 64, pattern = "^[0-9]{1,15}-[a-z0-9]{1,40}$")]
    next_token: Option<String>,
}

/// List sandboxes page by page
///
/// Returns the caller's sandboxes, newest first. The header `X-Total-Running` holds the number of matching sandboxes
/// that run, and `x-next-token` the token of the next page.
#[utoipa::path(
    get, path = "/e2b/v2/sandboxes", tag = "e2b",
    params(ListQuery, ("state" = Option<String>, Query, description = "Return only sandboxes in these states: `running`, `paused`, or both separated by a comma. Default: both.",
        pattern = "^(running|paused)(,(running|paused))*$")),
    responses((status = 200, description = "Sandboxes returned.", body = Vec<ListedView>))
)]
pub(crate) async fn e2b_list(
    call: Call,
    Query(query): Query<ListQuery>,
    RawQuery(raw): RawQuery,
) -> ApiResult<pages::ItemPage<ListedView>> {
    let states = states(raw.as_deref().unwrap_or_default())?;
    let template = match query.template.as_deref() {
        Some(text) => Some(template_name::resolve(&call, text).await?.name),
        None => None,
    };
    bounds::optional_text("nextToken", query.next_token.as_deref(), 1, 256)?;
    let filter = SandboxFilter {
        // An admin, too, sees only its own sandboxes through an SDK.
        owner: Some(call.caller.name.clone()),
        statuses: states
            .iter()
            .flat_map(|state| state.statuses())
            .copied()
            .collect(),
        metadata: metadata::read(query.metadata.as_deref().unwrap_or_default())?,
        template,
        created_from_ms: query.started_after.as_deref().map(read_time).transpose()?,
        is_oldest_first: matches!(query.order, Some(Order::Asc)),
        cursor: query.next_token,
        limit: query
            .limit
            .map_or(pages::MAX_ITEMS, |limit| limit.0 as usize),
        ..SandboxFilter::default()
    };
    let running = SandboxFilter {
        statuses: vec![SandboxStatus::Running],
        ..filter.clone()
    };
    let total = match states.contains(&StateFilter::Running) {
        true => call.service().count(&call.caller, running).await?,
        false => 0,
    };
    let page = call.service().list(&call.caller, filter).await?;
    let names = Names::find(&call, &page.items).await?;
    let view = |sandbox| ListedView::new(&call.app, sandbox, &names);
    let (mut headers, items) = pages::page(page.items.iter().map(view).collect(), page.next);
    headers.insert(TOTAL_RUNNING, HeaderValue::from(total));
    Ok((headers, items))
}

/// The sandboxes to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQueryV1 {
    /// Return only sandboxes with this metadata: `name=value&…`, URL-encoded as one parameter.
    metadata: Option<String>,
}

/// List running sandboxes
///
/// Returns the caller's running sandboxes, newest first, at most 1,000.
#[utoipa::path(
    get, path = "/e2b/sandboxes", tag = "e2b", params(ListQueryV1),
    responses((status = 200, description = "Running sandboxes returned.", body = Vec<ListedView>))
)]
pub(crate) async fn e2b_list_v1(
    call: Call,
    Query(query): Query<ListQueryV1>,
) -> Reply<Vec<ListedView>> {
    let filter = SandboxFilter {
        owner: Some(call.caller.name.clone()),
        statuses: vec![SandboxStatus::Running],
        metadata: metadata::read(query.metadata.as_deref().unwrap_or_default())?,
        ..SandboxFilter::default()
    };
    let page = call.service().list(&call.caller, filter).await?;
    let names = Names::find(&call, &page.items).await?;
    let view = |sandbox| ListedView::new(&call.app, sandbox, &names);
    Ok(Json(page.items.iter().map(view).collect()))
}

/// A state to select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateFilter {
    Running,
    Paused,
}

impl StateFilter {
    fn statuses(self) -> &'static [SandboxStatus] {
        match self {
            Self::Running => &[SandboxStatus::Running],
            Self::Paused => &[SandboxStatus::Paused, SandboxStatus::Stopped],
        }
    }
}

/// The states that a query selects: one parameter with commas, or several. Without one, all are selected.
fn states(query: &str) -> ServiceResult<Vec<StateFilter>> {
    let mut states = Vec::new();
    for value in query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("state="))
    {
        for word in decode_query(value)?
            .split(',')
            .filter(|word| !word.is_empty())
        {
            let state = match word {
                "running" => StateFilter::Running,
                "paused" => StateFilter::Paused,
                _ => {
                    return Err(ServiceError::invalid(
                        "state",
                        "`state` must be `running`, `paused` or both",
                    ));
                }
            };
            if !states.contains(&state) {
                states.push(state);
            }
        }
    }
    if states.is_empty() {
        states = vec![StateFilter::Running, StateFilter::Paused];
    }
    Ok(states)
}

/// Parses a time.
fn read_time(text: &str) -> ServiceResult<i64> {
    text.parse::<jiff::Timestamp>()
        .map(jiff::Timestamp::as_millisecond)
        .map_err(|_| {
            ServiceError::invalid(
                "startedAfter",
                "`startedAfter` must be a time like `2026-01-31T12:00:00Z`",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_with_commas_or_one_by_one() {
        let all = [StateFilter::Running, StateFilter::Paused];
        assert_eq!(states("").unwrap(), all);
        assert_eq!(states("state=running%2Cpaused&limit=3").unwrap(), all);
        assert_eq!(states("state=running&state=paused").unwrap(), all);
        assert_eq!(
            states("state=paused,paused").unwrap(),
            [StateFilter::Paused]
        );
        assert!(states("state=gone").is_err());
    }

    #[test]
    fn times_have_any_zone() {
        assert_eq!(read_time("1970-01-01T01:00:01.5+01:00").unwrap(), 1500);
        assert_eq!(read_time("1970-01-01T00:00:01.000000Z").unwrap(), 1000);
        assert!(read_time("yesterday").is_err());
    }
}
