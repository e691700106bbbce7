//! Which sandbox a path means.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_service::{Sandbox, ServiceError, ServiceResult};
use utoipa::IntoParams;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::sandbox_name;

/// Sandbox named in the path.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Named {
    /// Sandbox to act on: its ID, with or without a dash and a client ID behind it, or its alias.
    #[param(min_length = 1, max_length = 128)]
    pub(crate) id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Ok(Path(text)) = path else {
            return Err(ServiceError::no_sandbox("").into());
        };
        let id = sandbox_name(without_client(&text))?.to_owned();
        Ok(Self { id })
    }
}

/// Old clients put the id of a client behind the sandbox's; ids have no dash, but aliases may.
pub(crate) fn without_client(text: &str) -> &str {
    match text.split_once('-') {
        Some((id, _)) if id.len() >= LEAST_ID && id.parse::<SandboxId>().is_ok() => id,
        _ => text,
    }
}

/// Our ids have 20 characters; what is much shorter is the first word of an alias.
const LEAST_ID: usize = 16;

/// A sandbox as this dialect knows it: one that runs or is paused.
pub(crate) async fn existing(app: &App, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
    let sandbox = app.service().inspect(caller, name).await?;
    match sandbox.status {
        SandboxStatus::Running | SandboxStatus::Paused | SandboxStatus::Stopped => Ok(sandbox),
        SandboxStatus::Creating => {
            Err(ServiceError::no_sandbox(name).hint("it is still being made"))
        }
        SandboxStatus::Error => {
            let why = sandbox.reason.unwrap_or_default();
            Err(ServiceError::no_sandbox(name).hint(format!("it failed: {why}")))
        }
        SandboxStatus::Deleting | SandboxStatus::Deleted => {
            Err(ServiceError::no_sandbox(name).hint("it is gone"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_id_behind_the_sandboxs_is_not_looked_at() {
        let id = "abcdefghijklmnopqrst";
        assert_eq!(without_client(id), id);
        assert_eq!(without_client("abcdefghijklmnopqrst-6532622b"), id);
        assert_eq!(without_client("my-box"), "my-box");
        assert_eq!(without_client("-"), "-");
    }
}
