//! Makes a template or another sandbox from a sandbox.

use std::collections::BTreeMap;

use sandyard_service::ForkRequest;

use crate::bounds::{LifeSeconds, MetadataValue};
use crate::model::sandbox::SandboxReply;
use crate::model::template::TemplateView;
use crate::prelude::*;

/// Request to create a snapshot.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Snapshot {
    /// Name of the new template: 1–63 lower-case letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    name: String,
}

/// Keeps the sandbox's files as a template.
pub(crate) async fn snapshot_sandbox(
    call: &Call,
    name: &str,
    request: Snapshot,
) -> ApiResult<TemplateView> {
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
    let service = call.service();
    let template = service.snapshot(&call.caller, name, &request.name).await?;
    Ok(template.into())
}

/// Settings of the fork that differ from the original's. Every field is optional.
#[derive(Default, Deserialize, ToSchema)]
pub(crate) struct Fork {
    /// Labels of the fork.
    #[schema(schema_with = bounds::metadata_schema)]
    metadata: Option<BTreeMap<String, MetadataValue>>,
    /// Environment variables of the fork.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// Idle timeout of the fork in seconds.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout: Option<LifeSeconds>,
}

/// Creates another sandbox from the files of this one.
pub(crate) async fn fork_sandbox(
    call: &Call,
    name: &str,
    request: Fork,
) -> ApiResult<SandboxReply> {
    if let Some(env) = &request.env {
        bounds::env("env", env)?;
    }
    let fork = ForkRequest {
        env: request.env,
        metadata: request
            .metadata
            .map(|words| bounds::metadata("metadata", words))
            .transpose()?,
        timeout: request.timeout.map(LifeSeconds::as_duration),
    };
    let sandbox = call.service().fork(&call.caller, name, fork).await?;
    Ok(SandboxReply::new(&sandbox, call, "Sandbox forked"))
}
