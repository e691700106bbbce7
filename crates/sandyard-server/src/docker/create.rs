//! `POST /api/sandboxes/`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use sandyard_core::Caller;
use sandyard_service::{CreateRequest, PartialLimits, Sandbox, ServiceError};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{AnyOfBuilder, Object, ObjectBuilder, Schema, Type};

use super::view::Container;
use super::workspace;
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::{self, CpuLimit, MemoryLimit, PortNumber};
use crate::error::ApiError;
use crate::extract::{Body, IdempotencyKey};

/// Most ports one can name.
const MAX_PORTS: usize = 64;

/// A port outside: a number, or a number as text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum HostPort {
    Number(PortNumber),
    Text(String),
}

/// A sandbox to be made.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateContainer {
    /// What it is for.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\u0000]+$")]
    project_name: String,
    /// What it starts from: with the provider `docker` an image. The provider's default if it is left out.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    image: Option<String>,
    /// Which provider shall run it, like `docker`; the operator's choice if it is left out.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9-]+$")]
    provider: Option<String>,
    #[schema(schema_with = bounds::memory_limit_schema)]
    memory_limit: Option<MemoryLimit>,
    #[schema(schema_with = bounds::cpu_limit_schema)]
    cpu_limit: Option<CpuLimit>,
    /// Ports by their number inside. They are kept and told; every port has a preview URL anyway.
    #[schema(schema_with = ports_schema)]
    ports: Option<BTreeMap<String, HostPort>>,
}

impl CreateContainer {
    fn into_request(self, key: IdempotencyKey) -> Result<CreateRequest, ServiceError> {
        bounds::text("project_name", &self.project_name, 1, 255)?;
        bounds::optional_text("image", self.image.as_deref(), 1, 512)?;
        bounds::provider(self.provider.as_deref())?;
        Ok(CreateRequest {
            project: Some(self.project_name),
            template: self.image,
            provider: self.provider,
            limits: PartialLimits {
                memory_bytes: self.memory_limit.map(|it| it.bytes()).transpose()?,
                cpu_millis: self.cpu_limit.map(|it| it.millis()).transpose()?,
                ..PartialLimits::default()
            },
            ports: ports(self.ports.unwrap_or_default())?,
            idempotency_key: key.key,
            ..CreateRequest::default()
        })
    }
}

fn ports(named: BTreeMap<String, HostPort>) -> Result<BTreeMap<String, String>, ServiceError> {
    let wrong = || {
        ServiceError::invalid(
            "ports",
            format!(
                "`ports` maps up to {MAX_PORTS} ports inside, like `3000` or `3000/tcp`, to ports outside"
            ),
        )
    };
    if named.len() > MAX_PORTS {
        return Err(wrong());
    }
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    named
        .into_iter()
        .map(|(inside, outside)| {
            let outside = match outside {
                HostPort::Number(port) => port.0.to_string(),
                HostPort::Text(text) => text,
            };
            let number = inside.strip_suffix("/tcp").unwrap_or(&inside);
            if is_port(number) && is_port(&outside) {
                Ok((inside, outside))
            } else {
                Err(wrong())
            }
        })
        .collect()
}

fn ports_schema() -> Object {
    const PORT: &str = "^[1-9][0-9]{0,3}$";
    let inside = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[1-9][0-9]{0,3}(/tcp)?$"))
        .build();
    let outside = AnyOfBuilder::new()
        .item(
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .minimum(Some(1))
                .maximum(Some(65_535)),
        )
        .item(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .pattern(Some(PORT)),
        )
        .build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(Schema::Object(inside)))
        .additional_properties(Some(Schema::AnyOf(outside)))
        .max_properties(Some(MAX_PORTS))
        .build()
}

/// Makes a sandbox with a folder `/workspace`.
#[utoipa::path(
    post, path = "/api/sandboxes/", operation_id = "create_container", tag = "docker",
    params(IdempotencyKey), request_body = CreateContainer,
    responses((status = 200, description = "It runs.", body = Container))
)]
pub(crate) async fn create_container(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    key: IdempotencyKey,
    Body(request): Body<CreateContainer>,
) -> Result<Json<Container>, ApiError> {
    let request = request.into_request(key)?;
    let sandbox = app.service().create(&caller, request).await?;
    crate::audit::note_target(sandbox.id.as_str());
    if let Err(error) = make_workspace(&app, &caller, &sandbox).await {
        // The sandbox is there, and the first command makes the folder if it still can be made.
        tracing::warn!(sandbox.id = %sandbox.id, error = %error.error, "No workspace yet in `{}`", sandbox.id);
    }
    let sandbox = app.service().with_template_label(&caller, sandbox).await?;
    Ok(Json(sandbox.into()))
}

async fn make_workspace(app: &App, caller: &Caller, sandbox: &Sandbox) -> Result<(), ApiError> {
    let live = app.service().live(caller, sandbox.id.as_str()).await?;
    workspace::ensure(app, caller, &live).await
}
