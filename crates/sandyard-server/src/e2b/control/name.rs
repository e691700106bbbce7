//! The sandbox that a path names.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use sandyard_core::{SandboxId, SandboxStatus};
use sandyard_service::Sandbox;

use crate::prelude::*;

/// Sandbox named in the path.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SandboxParam {
    /// Sandbox to act on: its ID, with or without a dash and a client ID behind it, or its alias.
    #[param(min_length = 1, max_length = 128)]
    pub(crate) id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for SandboxParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Ok(Path(text)) = path else {
            return Err(ServiceError::no_sandbox("").into());
        };
        let id = sandbox_name(without_client(&text))?.to_owned();
        Ok(Self { id })
    }
}

/// Removes the id of a client, which old clients append to that of the sandbox. Ids have no dash, but aliases may.
pub(crate) fn without_client(text: &str) -> &str {
    match text.split_once('-') {
        Some((id, _)) if id.len() >= MIN_ID && id.parse::<SandboxId>().is_ok() => id,
        _ => text,
    }
}

/// Ids of sandboxes have 20 characters; a much shorter text is the start of an alias.
const MIN_ID: usize = 16;

/// A sandbox that runs or is paused: this dialect knows no others.
pub(crate) async fn existing(call: &Call, name: &str) -> ServiceResult<Sandbox> {
    let sandbox = call.inspect(name).await?;
    match sandbox.status {
        SandboxStatus::Running | SandboxStatus::Paused | SandboxStatus::Stopped => Ok(sandbox),
        SandboxStatus::Creating => {
            Err(ServiceError::no_sandbox(name).hint("it is still being created"))
        }
        SandboxStatus::Error => {
            let why = sandbox.reason.unwrap_or_default();
            Err(ServiceError::no_sandbox(name).hint(format!("it failed: {why}")))
        }
        SandboxStatus::Deleting | SandboxStatus::Deleted => {
            Err(ServiceError::no_sandbox(name).hint("it is deleted"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_client_after_that_of_the_sandbox_is_ignored() {
        let id = "abcdefghijklmnopqrst";
        assert_eq!(without_client(id), id);
        assert_eq!(without_client("abcdefghijklmnopqrst-6532622b"), id);
        assert_eq!(without_client("my-box"), "my-box");
        assert_eq!(without_client("-"), "-");
    }
}
