//! `GET /templates`, `/v2/templates`, `/templates/{name}` and `/templates/aliases/{name}`; `DELETE /templates/{name}`.

use sandyard_service::{ProviderView, Snapshot, Template};

use super::template_name::{self, BASE};
use super::{ENVD_VERSION, pages};
use crate::app::App;
use crate::prelude::*;

/// Templates are not built here, so every one has the same build.
const BUILD_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Template that sandboxes start from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bTemplate)]
pub(crate) struct TemplateView {
    /// ID of the template.
    #[serde(rename = "templateID")]
    template_id: String,
    /// ID of the build; constant, since templates are imported.
    #[serde(rename = "buildID")]
    build_id: &'static str,
    /// Default CPU limit in cores.
    cpu_count: u32,
    /// Default memory limit in MiB.
    #[serde(rename = "memoryMB")]
    memory_mb: u64,
    /// Default disk limit in MiB.
    #[serde(rename = "diskSizeMB")]
    disk_size_mb: u64,
    /// Whether everyone may use the template.
    public: bool,
    /// Names of the template.
    aliases: Vec<String>,
    /// Names of the template, with owner.
    names: Vec<String>,
    /// Time at which the template was created (RFC 3339).
    created_at: String,
    /// Time at which the template was last changed (RFC 3339).
    updated_at: String,
    /// User who created the template. Always null: not recorded.
    #[schema(value_type = Option<Object>)]
    created_by: (),
    /// Time at which a sandbox was last created from the template. Always null: not recorded.
    #[schema(value_type = Option<String>)]
    last_spawned_at: (),
    /// Number of sandboxes created from the template. Always 0: not recorded.
    spawn_count: u32,
    /// Number of builds of the template.
    build_count: u32,
    /// Version of E2B's agent that the sandbox's agent is compatible with.
    envd_version: &'static str,
    /// Status of the build. Always `ready`.
    build_status: &'static str,
    /// Whether this is the default template.
    is_default: bool,
}

/// Template with its builds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bTemplateWithBuilds)]
pub(crate) struct TemplateDetail {
    #[serde(flatten)]
    template: TemplateView,
    /// Builds of the template. Always empty: templates are imported.
    #[schema(value_type = Vec<Object>)]
    builds: [(); 0],
}

/// All templates that a caller may use, ordered by id.
async fn all(call: &Call) -> ServiceResult<Vec<TemplateView>> {
    let snapshots = call.service().snapshots(&call.caller, None).await?;
    let providers = call.service().providers();
    // Templates of a provider that cannot be reached are left out: this dialect cannot report more.
    let templates = call.service().templates(&call.caller).await?.templates;
    let view = |template: Template| {
        let snapshot = snapshots.iter().find(|one| one.name == template.info.name);
        let provider = providers
            .iter()
            .find(|one| one.info.name == template.provider)?;
        Some(view(&call.app, template, provider, snapshot))
    };
    let mut views: Vec<_> = templates.into_iter().filter_map(view).collect();
    views.sort_by(|one, other| one.template_id.cmp(&other.template_id));
    Ok(views)
}

fn view(
    app: &App,
    template: Template,
    provider: &ProviderView,
    snapshot: Option<&Snapshot>,
) -> TemplateView {
    let public = template.is_public;
    let template = template.info;
    let limits = &provider.info.default_limits;
    let client_name = |name: &str| template_name::qualified_name(app, &provider.info.name, name);
    let default = template_name::default_name_of(app, &provider.info.name);
    let is_provider_default = default.as_ref() == Some(&template.name);
    let is_default = provider.is_default && is_provider_default;
    let alias = match snapshot {
        Some(snapshot) => snapshot.alias.clone(),
        None if is_provider_default => Some(client_name(BASE)),
        None => Some(client_name(&template.name)),
    };
    let template_id = match snapshot {
        // The id of a snapshot determines its provider.
        Some(_) => template.name.clone(),
        None => client_name(&template.name),
    };
    let created = iso(template.created_ms.unwrap_or(0));
    TemplateView {
        build_id: BUILD_ID,
        cpu_count: limits.cpu_millis.div_ceil(1000).max(1),
        memory_mb: limits.memory_bytes >> 20,
        disk_size_mb: limits.disk_bytes >> 20,
        public,
        names: alias.iter().cloned().collect(),
        aliases: alias.into_iter().collect(),
        created_at: created.clone(),
        updated_at: created,
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

/// Finds a template by any of its names.
async fn find(call: &Call, text: &str) -> ServiceResult<TemplateView> {
    let named = template_name::resolve(call, text).await?;
    let id = match &named.provider {
        Some(provider) => template_name::qualified_name(&call.app, provider, &named.name),
        None => named.name.clone(),
    };
    let mut templates = all(call).await?.into_iter();
    templates
        .find(|template| template.template_id == id || template.template_id == named.name)
        .ok_or_else(|| template_name::missing(text))
}

/// List templates for E2B clients
///
/// Returns the templates and snapshots that the caller can create sandboxes from, sorted by name.
#[utoipa::path(
    get, path = "/e2b/templates", tag = "e2b",
    responses((status = 200, description = "Templates returned.", body = Vec<TemplateView>))
)]
pub(crate) async fn e2b_list_templates(call: Call) -> Reply<Vec<TemplateView>> {
    Ok(Json(all(&call).await?))
}

/// The templates to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplatesQuery {
    /// Maximum number of results, 1–100 (default 100).
    #[param(inline)]
    limit: Option<BoundedInt<1, 100>>,
    /// Position to continue from: the `x-next-token` of the previous page.
    #[param(max_length = 128)]
    next_token: Option<String>,
}

/// List templates page by page
///
/// Returns the templates and snapshots that the caller can create sandboxes from, sorted by name. The header
/// `x-next-token` holds the token of the next page.
#[utoipa::path(
    get, path = "/e2b/v2/templates", tag = "e2b", params(TemplatesQuery),
    responses((status = 200, description = "Templates returned.", body = Vec<TemplateView>))
)]
pub(crate) async fn e2b_list_templates_v2(
    call: Call,
    Query(query): Query<TemplatesQuery>,
) -> ApiResult<pages::ItemPage<TemplateView>> {
    bounds::optional_text("nextToken", query.next_token.as_deref(), 1, 256)?;
    let templates = all(&call).await?;
    let limit = query
        .limit
        .map_or(pages::MAX_ITEMS, |limit| limit.0 as usize);
    let token = query.next_token.as_deref();
    let (page, next) = pages::cut(templates, |one| &one.template_id, limit, token)?;
    Ok(pages::page(page, next))
}

/// Get a template
///
/// Returns one template that the caller can create sandboxes from.
#[utoipa::path(
    get, path = "/e2b/templates/{name}", tag = "e2b",
    params(("name" = String, Path, description = "Name or ID of the template.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "Template returned.", body = TemplateDetail))
)]
pub(crate) async fn e2b_get_template(
    call: Call,
    PathName(name): PathName,
) -> Reply<TemplateDetail> {
    let template = find(&call, &name).await?;
    Ok(Json(TemplateDetail {
        template,
        builds: [],
    }))
}

/// Template found by name.
#[derive(Serialize, ToSchema)]
#[schema(as = E2bTemplateAlias)]
pub(crate) struct AliasView {
    /// ID of the template.
    #[serde(rename = "templateID")]
    template_id: String,
    /// Whether everyone may use the template.
    public: bool,
}

/// Find a template by name
///
/// Tells whether a template of this name exists and is visible to the caller.
#[utoipa::path(
    get, path = "/e2b/templates/aliases/{name}", tag = "e2b",
    params(("name" = String, Path, description = "Name of the template.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "Template found.", body = AliasView))
)]
pub(crate) async fn e2b_find_template(call: Call, PathName(name): PathName) -> Reply<AliasView> {
    let template = find(&call, &name).await?;
    Ok(Json(AliasView {
        template_id: template.template_id,
        public: template.public,
    }))
}

/// Visibility of a template.
#[derive(Deserialize, ToSchema)]
#[schema(as = E2bTemplateUpdate)]
pub(crate) struct TemplateUpdate {
    /// Whether every user of the server may create sandboxes from the template.
    public: bool,
}

/// Names of a template.
#[derive(Serialize, ToSchema)]
#[schema(as = E2bTemplateNames)]
pub(crate) struct TemplateNames {
    /// Names of the template.
    names: Vec<String>,
}

/// Publish a template for E2B clients
///
/// Makes a snapshot of the caller public or private. A public snapshot can be used, and so read, by every user of the server.
/// Other templates are always public.
#[utoipa::path(
    patch, path = "/e2b/v2/templates/{name}", tag = "e2b",
    params(("name" = String, Path, description = "Name or ID of the template.", min_length = 1, max_length = 128)),
    request_body = TemplateUpdate,
    responses((status = 200, description = "Visibility changed.", body = TemplateNames))
)]
pub(crate) async fn e2b_publish_template(
    call: Call,
    PathName(name): PathName,
    Body(request): Body<TemplateUpdate>,
) -> Reply<TemplateNames> {
    let template = find(&call, &name).await?;
    let real = template_name::resolve(&call, &name).await?;
    let provider = real.provider.as_deref();
    call.service()
        .publish_template(&call.caller, provider, &real.name, request.public)
        .await?;
    Ok(Json(TemplateNames {
        names: template.names,
    }))
}

/// Delete a template for E2B clients
///
/// Deletes a template or snapshot. Sandboxes that were created from it keep working.
#[utoipa::path(
    delete, path = "/e2b/templates/{name}", tag = "e2b",
    params(("name" = String, Path, description = "Name or ID of the template.", min_length = 1, max_length = 128)),
    responses((status = 204, description = "Template deleted."))
)]
pub(crate) async fn e2b_delete_template(
    call: Call,
    PathName(name): PathName,
) -> ApiResult<StatusCode> {
    let real = template_name::resolve(&call, &name).await?;
    let provider = real.provider.as_deref();
    let service = call.service();
    let removed = service.remove_template(&call.caller, provider, &real.name);
    removed.await.map_err(|mut error| {
        // The name is valid, but the template cannot be deleted.
        if error.kind == ErrorKind::Invalid {
            error.kind = ErrorKind::Conflict;
        }
        error
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Build a template (not supported)
///
/// Always fails: templates cannot be built through E2B's API. Import one with `PUT /templates/{name}`.
#[utoipa::path(
    post, path = "/e2b/v3/templates", tag = "e2b",
    responses((status = 202, description = "Never returned."))
)]
pub(crate) async fn e2b_build_template() -> ApiError {
    ApiError::new(
        ErrorKind::Unsupported,
        "building templates is not supported",
    )
    .hint("import a root file system with `sandyard template import`, or prepare a sandbox and create a snapshot of it")
}
