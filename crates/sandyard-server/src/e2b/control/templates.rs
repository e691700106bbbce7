//! `GET /templates`, `/v2/templates`, `/templates/{name}` and `/templates/aliases/{name}`; `DELETE /templates/{name}`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::TemplateInfo;
use sandyard_service::{ProviderView, ServiceResult, Snapshot, Template};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::template_name::{self, BASE};
use super::{ENVD_VERSION, pages};
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::{PathName, Query};
use crate::time::iso;

/// Templates are not built here, so every one has the same build.
const BUILD_ID: &str = "00000000-0000-0000-0000-000000000000";

/// What sandboxes start from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bTemplate)]
pub(crate) struct TemplateView {
    #[serde(rename = "templateID")]
    template_id: String,
    #[serde(rename = "buildID")]
    build_id: &'static str,
    cpu_count: u32,
    #[serde(rename = "memoryMB")]
    memory_mb: u64,
    #[serde(rename = "diskSizeMB")]
    disk_size_mb: u64,
    /// Whether everybody may use it.
    public: bool,
    aliases: Vec<String>,
    names: Vec<String>,
    created_at: String,
    updated_at: String,
    /// Not known.
    #[schema(value_type = Option<Object>)]
    created_by: (),
    /// Not known.
    #[schema(value_type = Option<String>)]
    last_spawned_at: (),
    spawn_count: u32,
    build_count: u32,
    envd_version: &'static str,
    build_status: &'static str,
    is_default: bool,
}

/// One of them with its builds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bTemplateWithBuilds)]
pub(crate) struct TemplateDetail {
    #[serde(flatten)]
    template: TemplateView,
    /// None: templates are imported.
    #[schema(value_type = Vec<Object>)]
    builds: [(); 0],
}

/// All templates a caller may use, by name.
async fn all(app: &App, caller: &Caller) -> ServiceResult<Vec<TemplateView>> {
    let snapshots = app.service().snapshots(caller, None).await?;
    let providers = app.service().providers();
    // Those of a provider that cannot be reached are not there for now: this dialect has no way to say more.
    let templates = app.service().templates(caller).await?.templates;
    let view = |template: Template| {
        let snapshot = snapshots.iter().find(|one| one.name == template.info.name);
        let provider = providers
            .iter()
            .find(|one| one.info.name == template.provider)?;
        Some(view(app, template.info, provider, snapshot))
    };
    let mut views: Vec<_> = templates.into_iter().filter_map(view).collect();
    views.sort_by(|one, other| one.template_id.cmp(&other.template_id));
    Ok(views)
}

fn view(
    app: &App,
    template: TemplateInfo,
    provider: &ProviderView,
    snapshot: Option<&Snapshot>,
) -> TemplateView {
    let limits = &provider.info.default_limits;
    let shown = |name: &str| template_name::shown(app, &provider.info.name, name);
    let default = template_name::default_name_of(app, &provider.info.name);
    let is_provider_default = default.as_ref() == Some(&template.name);
    let is_default = provider.is_default && is_provider_default;
    let alias = match snapshot {
        Some(snapshot) => snapshot.alias.clone(),
        None if is_provider_default => Some(shown(BASE)),
        None => Some(shown(&template.name)),
    };
    let template_id = match snapshot {
        // Where a snapshot is follows from what it is.
        Some(_) => template.name.clone(),
        None => shown(&template.name),
    };
    let made = iso(template.created_ms.unwrap_or(0));
    TemplateView {
        build_id: BUILD_ID,
        cpu_count: limits.cpu_millis.div_ceil(1000).max(1),
        memory_mb: limits.memory_bytes >> 20,
        disk_size_mb: limits.disk_bytes >> 20,
        public: snapshot.is_none(),
        names: alias.iter().cloned().collect(),
        aliases: alias.into_iter().collect(),
        created_at: made.clone(),
        updated_at: made,
        created_by: (),
        last_spawned_at: (),
        spawn_count: 0,
        build_count: 1,
        envd_version: ENVD_VERSION,
        build_status: "ready",
        is_default,
        template_id,
    }
}

/// Finds one by whatever it may be called.
async fn find(app: &App, caller: &Caller, text: &str) -> ServiceResult<TemplateView> {
    let named = template_name::resolve(app, caller, text).await?;
    let id = match &named.provider {
        Some(provider) => template_name::shown(app, provider, &named.name),
        None => named.name.clone(),
    };
    let mut templates = all(app, caller).await?.into_iter();
    templates
        .find(|template| template.template_id == id || template.template_id == named.name)
        .ok_or_else(|| template_name::missing(text))
}

/// Lists what sandboxes can start from.
#[utoipa::path(
    get, path = "/e2b/templates", operation_id = "e2b_list_templates", tag = "e2b",
    responses((status = 200, description = "They, by name.", body = Vec<TemplateView>))
)]
pub(crate) async fn e2b_list_templates(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
) -> Result<Json<Vec<TemplateView>>, ApiError> {
    Ok(Json(all(&app, &caller).await?))
}

/// Which templates.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct TemplatesQuery {
    /// At most so many.
    #[param(inline)]
    limit: Option<Whole<1, 100>>,
    /// Goes on after an earlier page: its `x-next-token`.
    #[param(max_length = 128)]
    next_token: Option<String>,
}

/// Lists what sandboxes can start from, in pages.
#[utoipa::path(
    get, path = "/e2b/v2/templates", operation_id = "e2b_list_templates_v2", tag = "e2b",
    params(TemplatesQuery),
    responses((status = 200, description = "They, by name.", body = Vec<TemplateView>))
)]
pub(crate) async fn e2b_list_templates_v2(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(query): Query<TemplatesQuery>,
) -> Result<pages::Listed<TemplateView>, ApiError> {
    bounds::optional_text("nextToken", query.next_token.as_deref(), 1, 256)?;
    let templates = all(&app, &caller).await?;
    let limit = query.limit.map_or(pages::MOST, |limit| limit.0 as usize);
    let token = query.next_token.as_deref();
    let (page, next) = pages::cut(templates, |one| &one.template_id, limit, token)?;
    Ok(pages::page(page, next))
}

/// Tells about one template.
#[utoipa::path(
    get, path = "/e2b/templates/{name}", operation_id = "e2b_get_template", tag = "e2b",
    params(("name" = String, Path, description = "The template.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "It.", body = TemplateDetail))
)]
pub(crate) async fn e2b_get_template(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
) -> Result<Json<TemplateDetail>, ApiError> {
    let template = find(&app, &caller, &name).await?;
    Ok(Json(TemplateDetail {
        template,
        builds: [],
    }))
}

/// That there is a template of this name.
#[derive(Serialize, ToSchema)]
#[schema(as = E2bTemplateAlias)]
pub(crate) struct AliasView {
    #[serde(rename = "templateID")]
    template_id: String,
    /// Whether everybody may use it.
    public: bool,
}

/// Says whether there is a template of this name.
#[utoipa::path(
    get, path = "/e2b/templates/aliases/{name}", operation_id = "e2b_find_template", tag = "e2b",
    params(("name" = String, Path, description = "The template.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "There is.", body = AliasView))
)]
pub(crate) async fn e2b_find_template(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
) -> Result<Json<AliasView>, ApiError> {
    let template = find(&app, &caller, &name).await?;
    Ok(Json(AliasView {
        template_id: template.template_id,
        public: template.public,
    }))
}

/// Removes a template or a snapshot. Sandboxes made from it live on.
#[utoipa::path(
    delete, path = "/e2b/templates/{name}", operation_id = "e2b_delete_template", tag = "e2b",
    params(("name" = String, Path, description = "The template.", min_length = 1, max_length = 128)),
    responses((status = 204, description = "It is gone."))
)]
pub(crate) async fn e2b_delete_template(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
) -> Result<StatusCode, ApiError> {
    let real = template_name::resolve(&app, &caller, &name).await?;
    let provider = real.provider.as_deref();
    let removed = app.service().remove_template(&caller, provider, &real.name);
    removed.await.map_err(|mut error| {
        // The name is one; it is the template that cannot be removed.
        if error.kind == ErrorKind::Invalid {
            error.kind = ErrorKind::Conflict;
        }
        error
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Says that templates are not built in this way yet.
#[utoipa::path(
    post, path = "/e2b/v3/templates", operation_id = "e2b_build_template", tag = "e2b",
    responses((status = 202, description = "Never, so far."))
)]
pub(crate) async fn e2b_build_template() -> ApiError {
    ApiError::new(
        ErrorKind::Unsupported,
        "templates cannot be built through this API yet",
    )
    .hint("import a root with `sandyard template import`, or make a sandbox as you want it and keep it as a snapshot")
}
