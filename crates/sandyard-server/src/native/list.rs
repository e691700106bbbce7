//! `GET /sandboxes`.

use std::collections::BTreeMap;

use axum::extract::RawQuery;
use sandyard_core::bounds::{MAX_PROJECT, MAX_USER_ID};
use sandyard_service::SandboxFilter;

use crate::extract::decode_query;
use crate::model::sandbox::{SandboxInfo, Status};
use crate::prelude::*;

/// Prefix of metadata filters in a query.
const METADATA: &str = "metadata.";

/// Query of a list of sandboxes. `metadata.<name>=<value>` filters by metadata.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Return only sandboxes of this user. Only admins see sandboxes of others.
    #[param(min_length = 1, max_length = 128, pattern = r"^[^\u0000]+$")]
    owner: Option<String>,
    /// Alias of `owner`.
    #[param(min_length = 1, max_length = 128, pattern = r"^[^\u0000]+$")]
    user_id: Option<String>,
    /// Return only sandboxes with this status. Default: all except `deleted`.
    #[param(inline)]
    status: Option<Status>,
    /// Return only sandboxes of this project.
    #[param(min_length = 1, max_length = 128, pattern = r"^[^\u0000]+$")]
    project: Option<String>,
    /// Maximum number of results, 1–100 (default 100).
    #[param(inline)]
    limit: Option<BoundedInt<1, 1000>>,
    /// Position to continue from: the `next` of the previous page.
    #[param(max_length = 64, pattern = "^[0-9]{1,15}-[a-z0-9]{1,40}$")]
    cursor: Option<String>,
}

/// One page of sandboxes.
#[derive(Serialize, ToSchema)]
pub(crate) struct SandboxList {
    /// Sandboxes, newest first.
    sandboxes: Vec<SandboxInfo>,
    /// Value of `cursor` for the next page. Null on the last page.
    next: Option<String>,
}

/// List sandboxes
///
/// Returns the caller's sandboxes, newest first; an admin sees those of all users. Deleted sandboxes are left out
/// unless `status=deleted` is given.
///
/// To filter by metadata, add up to 16 parameters of the form `metadata.<name>=<value>`. To read the next page, repeat
/// the request with `cursor` set to the `next` of the last response.
#[utoipa::path(
    get, path = "/sandboxes", tag = "sandboxes", params(ListQuery),
    responses((status = 200, description = "Sandboxes returned.", body = SandboxList))
)]
pub(crate) async fn list_sandboxes(
    call: Call,
    Query(query): Query<ListQuery>,
    RawQuery(raw): RawQuery,
) -> Reply<SandboxList> {
    let owner = query.owner.or(query.user_id);
    bounds::optional_text("owner", owner.as_deref(), 1, MAX_USER_ID)?;
    bounds::optional_text("project", query.project.as_deref(), 1, MAX_PROJECT)?;
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
    let page = call.service().list(&call.caller, filter).await?;
    let info = |sandbox| SandboxInfo::new(&call, sandbox);
    let service = call.service();
    let sandboxes = service.with_template_labels(&call.caller, page.items);
    Ok(Json(SandboxList {
        sandboxes: sandboxes.await?.into_iter().map(info).collect(),
        next: page.next,
    }))
}

/// Parses the metadata filters of a query.
fn metadata(query: &str) -> ServiceResult<BTreeMap<String, String>> {
    let mut filters = BTreeMap::new();
    for pair in query.split('&').filter(|pair| pair.starts_with(METADATA)) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        filters.insert(decode_query(&name[METADATA.len()..])?, decode_query(value)?);
    }
    bounds::metadata_filters(filters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_out_of_a_query() {
        let filters = metadata("limit=3&metadata.a%20b=c+d&metadata.e=").unwrap();
        let expected = [("a b", "c d"), ("e", "")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(filters, BTreeMap::from(expected));
        assert!(metadata("metadata.a=%zz").is_err());
        assert!(metadata("metadata.=1").is_err());
    }
}
