//! `GET /sandboxes`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{RawQuery, State};
use sandyard_service::{SandboxFilter, ServiceError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::{Query, decode_query};
use crate::links::Links;
use crate::model::sandbox::{SandboxInfo, Status};

/// Begins the names of metadata in a query.
const METADATA: &str = "metadata.";
/// Most words of metadata to filter by.
const MAX_METADATA: usize = 16;

/// Which sandboxes. `metadata.<name>=<value>` asks for a word of metadata.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Whose; for admins.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\u0000]+$")]
    owner: Option<String>,
    /// The same as `owner`.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\u0000]+$")]
    user_id: Option<String>,
    /// In which status; all but deleted if it is left out.
    #[param(inline)]
    status: Option<Status>,
    /// Of which project.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\u0000]+$")]
    project: Option<String>,
    /// At most so many.
    #[param(inline)]
    limit: Option<Whole<1, 1000>>,
    /// Continues after an earlier page: its `next`.
    #[param(max_length = 64, pattern = "^[0-9]{1,15}-[a-z0-9]{1,40}$")]
    cursor: Option<String>,
}

/// Part of a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct SandboxList {
    /// Newest first.
    sandboxes: Vec<SandboxInfo>,
    /// The `cursor` of the next page; none: that was all.
    next: Option<String>,
}

/// Lists the caller's sandboxes; an admin's list is everybody's.
#[utoipa::path(
    get, path = "/sandboxes", operation_id = "list_sandboxes", tag = "sandboxes",
    params(ListQuery),
    responses((status = 200, description = "They.", body = SandboxList))
)]
pub(crate) async fn list_sandboxes(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    Query(query): Query<ListQuery>,
    RawQuery(raw): RawQuery,
) -> Result<Json<SandboxList>, ApiError> {
    let owner = query.owner.or(query.user_id);
    bounds::optional_text("owner", owner.as_deref(), 1, 255)?;
    bounds::optional_text("project", query.project.as_deref(), 1, 255)?;
    bounds::optional_text("cursor", query.cursor.as_deref(), 1, 256)?;
    let filter = SandboxFilter {
        owner,
        project: query.project,
        statuses: query.status.map(Status::statuses).unwrap_or_default(),
        metadata: metadata(raw.as_deref().unwrap_or_default())?,
        cursor: query.cursor,
        limit: query.limit.map_or(100, |limit| limit.0 as usize),
        ..SandboxFilter::default()
    };
    let page = app.service().list(&caller, filter).await?;
    let info = |sandbox| SandboxInfo::new(app.service(), &links, sandbox);
    let sandboxes = app.service().with_template_labels(&caller, page.items);
    Ok(Json(SandboxList {
        sandboxes: sandboxes.await?.into_iter().map(info).collect(),
        next: page.next,
    }))
}

/// Reads the words of metadata out of a query.
fn metadata(query: &str) -> Result<BTreeMap<String, String>, ServiceError> {
    let mut words = BTreeMap::new();
    for pair in query.split('&').filter(|pair| pair.starts_with(METADATA)) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode_query(&name[METADATA.len()..])?;
        let value = decode_query(value)?;
        bounds::text("metadata", &name, 1, 256)?;
        bounds::text("metadata", &value, 0, 4096)?;
        words.insert(name, value);
    }
    if words.len() > MAX_METADATA {
        return Err(ServiceError::invalid(
            "metadata",
            format!("at most {MAX_METADATA} words of metadata can be asked for"),
        ));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_out_of_a_query() {
        let words = metadata("limit=3&metadata.a%20b=c+d&metadata.e=").unwrap();
        let expected = [("a b", "c d"), ("e", "")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(words, BTreeMap::from(expected));
        assert!(metadata("metadata.a=%zz").is_err());
        assert!(metadata("metadata.=1").is_err());
    }
}
