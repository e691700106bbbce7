//! `GET /api/sandboxes/` and `GET /api/sandboxes/{id}`.

use axum::Json;
use axum::extract::State;
use sandyard_core::SandboxStatus;
use sandyard_service::{SandboxFilter, ServiceError};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::Container;
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};

/// Which sandboxes.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContainerQuery {
    /// Of which project; all if it is left out.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\u0000]+$")]
    project_name: Option<String>,
}

/// Lists the caller's sandboxes, at most 1,000.
#[utoipa::path(
    get, path = "/api/sandboxes/", operation_id = "list_containers", tag = "docker",
    params(ContainerQuery),
    responses((status = 200, description = "They, newest first.", body = Vec<Container>))
)]
pub(crate) async fn list_containers(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(query): Query<ContainerQuery>,
) -> Result<Json<Vec<Container>>, ApiError> {
    bounds::optional_text("project_name", query.project_name.as_deref(), 1, 255)?;
    let filter = SandboxFilter {
        project: query.project_name,
        ..SandboxFilter::default()
    };
    let page = app.service().list(&caller, filter).await?;
    let sandboxes = app.service().with_template_labels(&caller, page.items);
    Ok(Json(
        sandboxes.await?.into_iter().map(Container::from).collect(),
    ))
}

/// Tells about one sandbox.
#[utoipa::path(
    get, path = "/api/sandboxes/{id}", operation_id = "get_container", tag = "docker",
    params(SandboxName),
    responses((status = 200, description = "It.", body = Container))
)]
pub(crate) async fn get_container(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<Container>, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    // This contract has no word for what is gone.
    if sandbox.status == SandboxStatus::Deleted {
        return Err(ServiceError::no_sandbox(&name.id).into());
    }
    let sandbox = app.service().with_template_label(&caller, sandbox).await?;
    Ok(Json(sandbox.into()))
}
