//! Bodies, queries, paths and headers, with refusals in our own words.

use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError};
use sandyard_core::bounds::MAX_IDEMPOTENCY_KEY;
use sandyard_core::{ErrorKind, percent};
use sandyard_service::{MEMORY_WAIT, MemoryHold, ServiceError, ServiceResult, UNCOUNTED_BYTES};
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::audit;
use crate::error::{ApiError, ApiResult, chain};
use crate::json_body::{self, IgnoreUnknownFields};
use crate::listen::is_body_timeout;

/// A JSON body. Unreadable JSON is 400; a missing or wrong field is 422 and named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> ApiResult<Self> {
        if !is_json(request.headers()) {
            return Err(not_json());
        }
        collected(request).await?.read().map(Self)
    }
}

/// A body that may be left out or null: then every field is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionalBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> ApiResult<Self> {
        let is_json = is_json(request.headers());
        let collected = collected(request).await?;
        if collected.body.is_empty() {
            return Ok(Self(T::default()));
        }
        if !is_json {
            return Err(not_json());
        }
        let body: Option<T> = collected.read()?;
        Ok(Self(body.unwrap_or_default()))
    }
}

fn not_json() -> ApiError {
    ApiError::new(
        ErrorKind::Invalid,
        "the body must be JSON: send `Content-Type: application/json`",
    )
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = media_type(headers);
    media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
}

/// A body in memory, which is accounted for until the request is answered.
struct Collected {
    body: bytes::Bytes,
    allows_unknown_fields: bool,
}

impl Collected {
    fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        json_body::read(&self.body, self.allows_unknown_fields)
    }
}

async fn collected(request: Request) -> Result<Collected, ApiError> {
    let extensions = request.extensions();
    let memory = extensions.get::<RequestMemory>().cloned();
    let allows_unknown_fields = extensions.get::<IgnoreUnknownFields>().is_some();
    let body = request.with_limited_body().into_body();
    let body = match memory {
        Some(RequestMemory(memory)) => collect(body, &memory).await?,
        None => body.collect().await.map_err(body_error)?.to_bytes(),
    };
    Ok(Collected {
        body,
        allows_unknown_fields,
    })
}

/// Accounts for the memory of a request's body; an extension of every request that has passed the gate.
#[derive(Clone, Debug)]
pub(crate) struct RequestMemory(pub(crate) Arc<MemoryHold>);

async fn collect(mut body: axum::body::Body, memory: &MemoryHold) -> ApiResult<bytes::Bytes> {
    let mut content = Vec::new();
    // All at once where the length is known: two requests that wait for each other's half would never end.
    let announced = body.size_hint().exact().unwrap_or(0);
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    let mut is_reserved = false;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(body_error)?.into_data() else {
            continue;
        };
        let length = content.len() + piece.len();
        if !is_reserved || length > content.capacity() {
            is_reserved = true;
            let capacity = length.max(content.capacity() * 2).max(announced);
            reserve(&mut content, memory, capacity).await?;
        }
        content.extend_from_slice(&piece);
    }
    Ok(content.into())
}

/// A body that did not arrive, or exceeds the route's maximum.
fn body_error(error: impl std::error::Error + 'static) -> ApiError {
    if is_body_timeout(&error) {
        return ApiError::new(ErrorKind::TimedOut, "the body stopped coming");
    }
    if chain(&error).any(|error| error.is::<LengthLimitError>()) {
        return ApiError::new(ErrorKind::TooLarge, "the body exceeds the maximum size")
            .hint("send large files with upload-file, which streams");
    }
    ApiError::new(ErrorKind::BadRequest, "the body did not arrive whole")
}

/// A query string; a wrong value is 422.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        axum::extract::Query::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|error| query_error(&error.body_text()))
    }
}

/// Reads the name of the parameter out of axum's text: `…query string: limit: invalid digit…` or ``missing field `path` ``.
fn query_error(text: &str) -> ApiError {
    let why = text.split_once("string: ").map_or(text, |(_, why)| why);
    let missing = why
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split_once('`'));
    let field = match (missing, why.split_once(": ")) {
        (Some((field, _)), _) => Some(field),
        (None, Some((path, _))) if !path.contains(' ') => Some(path),
        _ => None,
    };
    ApiError::new(ErrorKind::Invalid, why).field(field.map(str::to_owned))
}

/// Decodes a name or value of a query.
pub(crate) fn decode_query(text: &str) -> ServiceResult<String> {
    percent::decode_strict(&text.replace('+', " ")).ok_or_else(|| {
        ServiceError::invalid(
            "metadata",
            "the query is not valid percent-encoded UTF-8: write `%` as `%25`",
        )
    })
}

/// A name in a path of something other than a sandbox: a user, a key, a template.
#[derive(Clone, Debug)]
pub(crate) struct PathName(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        match path_word(parts, state, "name").await {
            Some(word) if is_plain(&word) => {
                audit::note_target(&word);
                Ok(Self(word))
            }
            _ => Err(ApiError::new(
                ErrorKind::NotFound,
                "there is nothing of that name",
            )),
        }
    }
}

/// Sandbox named in the path.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SandboxName {
    /// Sandbox to act on: its ID, its alias, or the ID its provider gave it.
    #[param(min_length = 1, max_length = 128)]
    pub id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for SandboxName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let id = path_word(parts, state, "id").await.unwrap_or_default();
        sandbox_name(&id)?;
        Ok(Self { id })
    }
}

async fn path_word<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    let word = params.iter().find(|(key, _)| *key == name)?.1;
    Some(word.to_owned())
}

/// Lets through what can be the name of a sandbox, and notes it for the audit.
pub(crate) fn sandbox_name(name: &str) -> ServiceResult<&str> {
    if !is_plain(name) {
        return Err(ServiceError::no_sandbox(name));
    }
    audit::note_sandbox(name);
    Ok(name)
}

/// Databases do not take every character, and nothing we name has strange ones.
fn is_plain(word: &str) -> bool {
    (1..=128).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Header that makes a retry safe.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IdempotencyKey {
    /// Any unique text. Repeating a request with the same key returns the sandbox of the first request instead of
    /// creating another one.
    #[param(
        rename = "Idempotency-Key",
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]+$"
    )]
    pub key: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(Self::default());
        };
        match value.to_str() {
            Ok(key)
                if (1..=MAX_IDEMPOTENCY_KEY).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()) =>
            {
                Ok(Self {
                    key: Some(key.to_owned()),
                })
            }
            _ => Err(ApiError::new(
                ErrorKind::Invalid,
                format!("`Idempotency-Key` must have 1 to {MAX_IDEMPOTENCY_KEY} visible ASCII characters"),
            )
            .field(Some("Idempotency-Key".to_owned()))),
        }
    }
}

/// The media type of a body, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(http::header::CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let media = text.split(';').next().unwrap_or("");
    media.trim().to_ascii_lowercase()
}

/// Reads a whole small body.
pub(crate) async fn small_body(
    body: axum::body::Body,
    max: usize,
    memory: Option<RequestMemory>,
) -> ApiResult<bytes::Bytes> {
    let body = axum::body::Body::new(http_body_util::Limited::new(body, max));
    match memory {
        Some(RequestMemory(memory)) => collect(body, &memory).await,
        None => Ok(body.collect().await.map_err(body_error)?.to_bytes()),
    }
}

/// Grows a buffer to `length` bytes in all, after the memory budget has granted them.
pub(crate) async fn reserve(
    content: &mut Vec<u8>,
    memory: &MemoryHold,
    length: usize,
) -> ApiResult<()> {
    if length > UNCOUNTED_BYTES {
        let more = length.saturating_sub(memory.bytes());
        memory.grow(more, MEMORY_WAIT).await?;
    }
    content.reserve_exact(length.saturating_sub(content.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn refusals_name_the_parameter() {
        let prefix = "Failed to deserialize query string: ";
        for (text, field) in [
            ("missing field `path`", Some("path")),
            ("limit: invalid digit found in string", Some("limit")),
            ("invalid type: null, expected struct X", None),
        ] {
            let response = query_error(&format!("{prefix}{text}")).into_response();
            let body = response
                .extensions()
                .get::<crate::error::ErrorBody>()
                .unwrap();
            assert_eq!(body.field.as_deref(), field, "{text}");
        }
    }

    #[test]
    fn strange_names_are_not_found() {
        for name in ["", "a b", "a\0b", "é", &"a".repeat(129)] {
            assert!(sandbox_name(name).is_err(), "{name:?}");
        }
        assert!(sandbox_name("29ef1923-20e4-4e41").is_ok());
    }
}
