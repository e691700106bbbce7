//! `POST /sandboxes/{id}/snapshots` and `GET /snapshots`. Snapshots are deleted like templates.
//!
//! A snapshot keeps files, not memory.

use sandyard_service::Snapshot;

use crate::prelude::*;

use super::name::{self, SandboxParam, without_client};
use super::{pages, template_name};

/// Tag of names without a tag.
const TAG: &str = ":default";

/// Request to create a snapshot.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = E2bNewSnapshot)]
pub(crate) struct NewSnapshot {
    /// Name of the snapshot, 1–128 letters, digits and `._/:-`. An older snapshot of the same name loses the name.
    /// Default: none.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._/:-]+$")]
    name: Option<String>,
}

/// Snapshot of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bSnapshot)]
pub(crate) struct SnapshotView {
    /// ID to create sandboxes from.
    #[serde(rename = "snapshotID")]
    snapshot_id: String,
    /// Names of the snapshot, with owner and tag.
    names: Vec<String>,
}

impl From<Snapshot> for SnapshotView {
    fn from(snapshot: Snapshot) -> Self {
        let Snapshot {
            name, owner, alias, ..
        } = snapshot;
        let full = alias.map(|alias| match alias.contains(':') {
            true => format!("{owner}/{alias}"),
            false => format!("{owner}/{alias}{TAG}"),
        });
        Self {
            snapshot_id: format!("{name}{TAG}"),
            names: full.into_iter().collect(),
        }
    }
}

/// Create a snapshot for E2B clients
///
/// Saves the files of a sandbox as a template of the caller. Processes and memory are not saved.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/snapshots", tag = "e2b", params(SandboxParam), request_body = Option<NewSnapshot>,
    responses((status = 201, description = "Snapshot created.", body = SnapshotView))
)]
pub(crate) async fn e2b_snapshot(
    call: Call,
    target: SandboxParam,
    OptionalBody(new): OptionalBody<NewSnapshot>,
) -> ApiResult<(StatusCode, Json<SnapshotView>)> {
    let sandbox = name::existing(&call, &target.id).await?;
    let name = new.name;
    let alias = name.as_deref().map(template_name::plain);
    let service = call.service();
    let snapshot = service
        .snapshot_as(&call.caller, sandbox.id.as_str(), alias)
        .await?;
    Ok((StatusCode::CREATED, Json(snapshot.into())))
}

/// The snapshots to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotsQuery {
    /// Return only snapshots of this sandbox.
    #[serde(rename = "sandboxID")]
    #[param(rename = "sandboxID", max_length = 128)]
    sandbox_id: Option<String>,
    /// Return only snapshots with this name.
    #[param(max_length = 512)]
    name: Option<String>,
    /// Maximum number of results, 1–100 (default 100).
    #[param(inline)]
    limit: Option<BoundedInt<1, 100>>,
    /// Position to continue from: the `x-next-token` of the previous page.
    #[param(max_length = 128)]
    next_token: Option<String>,
}

/// List snapshots
///
/// Returns the caller's snapshots, newest first. The header `x-next-token` holds the token of the next page.
#[utoipa::path(
    get, path = "/e2b/snapshots", tag = "e2b", params(SnapshotsQuery),
    responses((status = 200, description = "Snapshots returned.", body = Vec<SnapshotView>))
)]
pub(crate) async fn e2b_list_snapshots(
    call: Call,
    Query(query): Query<SnapshotsQuery>,
) -> ApiResult<pages::ItemPage<SnapshotView>> {
    bounds::optional_text("name", query.name.as_deref(), 1, 512)?;
    let of = query.sandbox_id.as_deref().map(without_client);
    let mut snapshots = call.service().snapshots(&call.caller, of).await?;
    snapshots.retain(|snapshot| snapshot.owner == call.caller.name);
    if let Some(name) = query.name.as_deref().map(template_name::plain) {
        snapshots.retain(|one| one.name == name || one.alias.as_deref() == Some(name));
    }
    let limit = query
        .limit
        .map_or(pages::MAX_ITEMS, |limit| limit.0 as usize);
    let token = query.next_token.as_deref();
    let (page, next) = pages::cut(snapshots, |one| &one.name, limit, token)?;
    Ok(pages::page(
        page.into_iter().map(SnapshotView::from).collect(),
        next,
    ))
}
