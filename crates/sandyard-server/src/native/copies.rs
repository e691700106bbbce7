//! `POST /sandboxes/{id}/snapshot`, `POST /sandboxes/{id}/fork`, `GET /sandboxes/{id}/diff`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use sandyard_provider::ChangeKind;
use sandyard_service::{ForkRequest, ServiceError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::templates::TemplateView;
use super::view::SandboxReply;
use crate::app::App;
use crate::bounds::{self, LifeSeconds, MetadataValue};
use crate::error::ApiError;
use crate::extract::{Body, OptionalBody, SandboxName};
use crate::links::Links;
use crate::need::Who;

/// Most changed files that are listed.
const MAX_CHANGES: usize = 10_000;

/// A template to be made.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Snapshot {
    /// What it shall be called.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    name: String,
}

/// Keeps a sandbox's files as a template.
#[utoipa::path(
    post, path = "/sandboxes/{id}/snapshot", operation_id = "snapshot_sandbox", tag = "templates",
    params(SandboxName), request_body = Snapshot,
    responses((status = 200, description = "The template.", body = TemplateView))
)]
pub(crate) async fn snapshot_sandbox(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
    Body(request): Body<Snapshot>,
) -> Result<Json<TemplateView>, ApiError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_good = request.name.bytes().next().is_some_and(is_plain)
        && request.name.len() <= 63
        && request
            .name
            .bytes()
            .all(|byte| is_plain(byte) || b"._-".contains(&byte));
    if !is_good {
        return Err(ServiceError::invalid(
            "name",
            "a template's name has 1 to 63 lower-case letters, digits, dots, dashes and underscores",
        )
        .into());
    }
    let template = app
        .service()
        .snapshot(&caller, &name.id, &request.name)
        .await?;
    Ok(Json(template.into()))
}

/// How the copy shall differ. All of it may be left out: then it does not.
#[derive(Default, Deserialize, ToSchema)]
pub(crate) struct Fork {
    /// Words of its maker's own.
    #[schema(schema_with = bounds::metadata_schema)]
    metadata: Option<BTreeMap<String, MetadataValue>>,
    /// Variables every command gets.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// Seconds it lives without activity.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout: Option<LifeSeconds>,
}

/// Makes another sandbox from the files of this one as they are now.
#[utoipa::path(
    post, path = "/sandboxes/{id}/fork", operation_id = "fork_sandbox", tag = "sandboxes",
    params(SandboxName), request_body = Option<Fork>,
    responses((status = 200, description = "The copy, running.", body = SandboxReply))
)]
pub(crate) async fn fork_sandbox(
    State(app): State<App>,
    Who(caller): Who,
    links: Links,
    name: SandboxName,
    OptionalBody(request): OptionalBody<Option<Fork>>,
) -> Result<Json<SandboxReply>, ApiError> {
    let request = request.unwrap_or_default();
    if let Some(env) = &request.env {
        bounds::env("env", env)?;
    }
    let wanted = ForkRequest {
        env: request.env,
        metadata: request
            .metadata
            .map(|words| bounds::metadata("metadata", words))
            .transpose()?,
        timeout: request.timeout.map(LifeSeconds::as_duration),
    };
    let sandbox = app.service().fork(&caller, &name.id, wanted).await?;
    Ok(Json(SandboxReply::new(&sandbox, &links, "Sandbox forked")))
}

/// One file that differs from the template's.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangeView {
    /// Where, as seen inside.
    path: String,
    /// How: `added`, `modified` or `deleted`.
    kind: &'static str,
}

/// What changed since the template.
#[derive(Serialize, ToSchema)]
pub(crate) struct DiffReply {
    changes: Vec<ChangeView>,
    /// Whether there are more than are listed.
    truncated: bool,
}

/// Lists what changed in a sandbox since its template.
#[utoipa::path(
    get, path = "/sandboxes/{id}/diff", operation_id = "diff_sandbox", tag = "templates",
    params(SandboxName),
    responses((status = 200, description = "What changed.", body = DiffReply))
)]
pub(crate) async fn diff_sandbox(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
) -> Result<Json<DiffReply>, ApiError> {
    let changes = app.service().diff(&caller, &name.id).await?;
    Ok(Json(DiffReply {
        truncated: changes.len() > MAX_CHANGES,
        changes: changes
            .into_iter()
            .take(MAX_CHANGES)
            .map(|change| ChangeView {
                path: change.path,
                kind: match change.kind {
                    ChangeKind::Added => "added",
                    ChangeKind::Modified => "modified",
                    ChangeKind::Deleted => "deleted",
                },
            })
            .collect(),
    }))
}
