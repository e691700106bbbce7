//! `POST /api/sandboxes`.

use std::collections::BTreeMap;

use sandyard_core::bounds::{MAX_PROJECT, MAX_TEMPLATE};
use sandyard_service::{CreateRequest, PartialLimits, Sandbox};
use utoipa::openapi::schema::{AnyOfBuilder, Object, ObjectBuilder, Schema, Type};

use super::view::Container;
use super::workspace;
use crate::bounds::{CpuLimit, MemoryLimit, PortNumber};
use crate::extract::IdempotencyKey;
use crate::prelude::*;

/// Maximum number of ports in a request.
const MAX_PORTS: usize = 64;

/// Port outside: a number, or a number as text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum HostPort {
    Number(PortNumber),
    Text(String),
}

/// Request to create a sandbox in the Docker style.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateContainer {
    /// Name of the project that the sandbox is for, 1–128 characters.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000]+$")]
    project_name: String,
    /// Template to start from; an image if the provider is `docker`. Default: the provider's default template.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    image: Option<String>,
    /// Provider that runs the sandbox, for example `docker`. Default: the operator's choice.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9-]+$")]
    provider: Option<String>,
    /// Memory limit.
    #[schema(schema_with = bounds::memory_limit_schema)]
    memory_limit: Option<MemoryLimit>,
    /// CPU limit in cores.
    #[schema(schema_with = bounds::cpu_limit_schema)]
    cpu_limit: Option<CpuLimit>,
    /// Ports by their number inside. They are stored and returned; every port has a preview URL anyway.
    #[schema(schema_with = ports_schema)]
    ports: Option<BTreeMap<String, HostPort>>,
}

impl CreateContainer {
    fn into_request(self, key: IdempotencyKey) -> ServiceResult<CreateRequest> {
        bounds::text("project_name", &self.project_name, 1, MAX_PROJECT)?;
        bounds::optional_text("image", self.image.as_deref(), 1, MAX_TEMPLATE)?;
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

fn ports(ports_by_name: BTreeMap<String, HostPort>) -> ServiceResult<BTreeMap<String, String>> {
    let wrong = || {
        ServiceError::invalid(
            "ports",
            format!(
                "`ports` maps up to {MAX_PORTS} ports inside, like `3000` or `3000/tcp`, to ports outside"
            ),
        )
    };
    if ports_by_name.len() > MAX_PORTS {
        return Err(wrong());
    }
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    ports_by_name
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
        .description(Some(
            "Ports of the sandbox: port inside, like `3000` or `3000/tcp`, to port outside. They are stored and returned, \
             but not published: every port has a preview URL.",
        ))
        .build()
}

/// Create a sandbox in the Docker style
///
/// Creates a sandbox with a directory `/workspace` for the files of a project, and waits until it is running. Send an
/// `Idempotency-Key` header to make a retry return the same sandbox.
#[utoipa::path(
    post, path = "/api/sandboxes", tag = "docker", params(IdempotencyKey), request_body = CreateContainer,
    responses((status = 200, description = "Sandbox created and running.", body = Container))
)]
pub(crate) async fn create_container(
    call: Call,
    key: IdempotencyKey,
    Body(request): Body<CreateContainer>,
) -> Reply<Container> {
    let request = request.into_request(key)?;
    let sandbox = call.service().create(&call.caller, request).await?;
    crate::audit::note_sandbox(sandbox.id.as_str());
    if let Err(error) = make_workspace(&call, &sandbox).await {
        // The sandbox exists; the first command tries to create the directory again.
        tracing::warn!(sandbox.id = %sandbox.id, error = %error.error, "No workspace yet in `{}`", sandbox.id);
    }
    let service = call.service();
    let sandbox = service.with_template_label(&call.caller, sandbox).await?;
    Ok(Json(Container::new(&call, sandbox)))
}

async fn make_workspace(call: &Call, sandbox: &Sandbox) -> ApiResult<()> {
    let live = call.live(sandbox.id.as_str()).await?;
    workspace::ensure(call, &live).await
}
