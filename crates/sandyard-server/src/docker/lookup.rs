//! `GET /api/sandboxes` and `GET /api/sandboxes/{id}`.

use sandyard_core::SandboxStatus;
use sandyard_core::bounds::MAX_PROJECT;
use sandyard_service::SandboxFilter;

use crate::prelude::*;

use super::view::Container;

/// Query of a list of sandboxes.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContainerQuery {
    /// Return only sandboxes of this project. Default: all.
    #[param(min_length = 1, max_length = 128, pattern = r"^[^\u0000]+$")]
    project_name: Option<String>,
}

/// List sandboxes in the Docker style
///
/// Returns the caller's sandboxes, newest first, at most 1,000.
#[utoipa::path(
    get, path = "/api/sandboxes", tag = "docker", params(ContainerQuery),
    responses((status = 200, description = "Sandboxes returned.", body = Vec<Container>))
)]
pub(crate) async fn list_containers(
    call: Call,
    Query(query): Query<ContainerQuery>,
) -> Reply<Vec<Container>> {
    bounds::optional_text(
        "project_name",
        query.project_name.as_deref(),
        1,
        MAX_PROJECT,
    )?;
    let filter = SandboxFilter {
        project: query.project_name,
        ..SandboxFilter::default()
    };
    let page = call.service().list(&call.caller, filter).await?;
    let service = call.service();
    let sandboxes = service.with_template_labels(&call.caller, page.items);
    let sandboxes = sandboxes.await?.into_iter();
    Ok(Json(
        sandboxes
            .map(|sandbox| Container::new(&call, sandbox))
            .collect(),
    ))
}

/// Get a sandbox in the Docker style
///
/// Returns one sandbox. A deleted sandbox is not found.
#[utoipa::path(
    get, path = "/api/sandboxes/{id}", tag = "docker", params(SandboxName),
    responses((status = 200, description = "Sandbox returned.", body = Container))
)]
pub(crate) async fn get_container(call: Call, name: SandboxName) -> Reply<Container> {
    let sandbox = call.inspect(&name.id).await?;
    // This dialect has no status for a deleted sandbox.
    if sandbox.status == SandboxStatus::Deleted {
        return Err(ServiceError::no_sandbox(&name.id).into());
    }
    let service = call.service();
    let sandbox = service.with_template_label(&call.caller, sandbox).await?;
    Ok(Json(Container::new(&call, sandbox)))
}
