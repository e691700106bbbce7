//! The enveloped dialect: the native routes below two other prefixes, always with credentials, every JSON answer wrapped.
//!
//! Success is `{"code": 200, "msg": "Request success", "data": …}`, failure `{"code": <status>, "msg": …, "data": null,
//! "trace_id": …}` with the same HTTP status. Streams and downloads go through as they are.

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use http_body::Body as _;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ErrorBody, PartialOutputFields};
use crate::extract::media_type;
use crate::middleware::request_id::RequestId;
use crate::route::Route;

/// Where the dialect lives, and what its operation ids begin with.
pub(crate) const PREFIXES: [(&str, &str); 2] = [
    ("/agent/sandboxes/sandboxes", "enveloped_"),
    ("/api/v1/agent/sandboxes", "enveloped_v1_"),
];
/// The dialect's accounts, and the one route of them that has no envelope.
const AUTH: &str = "/api/v1/auth";
const LOGIN: &str = "/api/v1/auth/login/swagger";
/// What it is made of.
const NATIVE: &str = "/sandboxes";
/// What comes before and after the data.
const BEFORE: &[u8] = br#"{"code":200,"msg":"Request success","data":"#;
const AFTER: &[u8] = b"}";

/// The routes of this dialect, made from all others that begin with `/sandboxes`.
pub(crate) fn routes(native: &[Route]) -> Vec<Route> {
    let mut routes = Vec::new();
    for (prefix, ids) in PREFIXES {
        routes.extend(native.iter().filter_map(|route| {
            let relocate = |path: &str| {
                let rest = path.strip_prefix(NATIVE)?;
                let is_below = rest.is_empty() || rest.starts_with('/');
                is_below.then(|| format!("{prefix}{rest}"))
            };
            Some(route.relocated(ids, relocate)?.strict())
        }));
    }
    routes
}

/// Says whether a path is this dialect's.
pub(crate) fn is_enveloped(path: &str) -> bool {
    let is_below = |prefix: &str| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    PREFIXES.iter().any(|(prefix, _)| is_below(prefix)) || (is_below(AUTH) && !is_below(LOGIN))
}

/// Error response of the enveloped API.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EnvelopedError {
    /// HTTP status of the response.
    code: u16,
    /// What went wrong, for people.
    msg: String,
    /// Always null in an error.
    #[schema(value_type = Option<Object>)]
    data: (),
    /// ID of the request, to find it in the server's log.
    trace_id: String,
    /// Machine-readable error code, stable between versions, for example `not_found`.
    error: String,
    /// What to do about the error, if there is advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hint: Option<String>,
    #[serde(flatten)]
    partial_output: PartialOutputFields,
}

/// Puts the answers of this dialect into their envelopes.
pub(crate) async fn wrap(request: Request, next: Next) -> Response {
    if !is_enveloped(request.uri().path()) {
        return next.run(request).await;
    }
    let id = request.extensions().get::<RequestId>().cloned();
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<ErrorBody>() {
        return wrap_error(response, error, id);
    }
    let is_json = media_type(response.headers()) == "application/json";
    let is_download = response.headers().contains_key(header::CONTENT_DISPOSITION);
    if !response.status().is_success() || !is_json || is_download {
        return response;
    }
    wrap_data(response)
}

fn wrap_error(response: Response, error: ErrorBody, id: Option<RequestId>) -> Response {
    let body = EnvelopedError {
        code: response.status().as_u16(),
        msg: error.detail,
        data: (),
        trace_id: id.map_or_else(String::new, |id| id.0),
        error: error.code,
        hint: error.hint,
        partial_output: error.partial_output,
    };
    let (mut parts, _) = response.into_parts();
    let wrapped = Json(body).into_response();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    parts.headers.extend(wrapped.headers().clone());
    Response::from_parts(parts, wrapped.into_body())
}

/// Puts the envelope around the body without looking at it.
fn wrap_data(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    if let Some(length) = body.size_hint().exact() {
        let total = length + (BEFORE.len() + AFTER.len()) as u64;
        parts.headers.insert(header::CONTENT_LENGTH, total.into());
    }
    let pieces = stream::once(async { Ok(Bytes::from_static(BEFORE)) })
        .chain(body.into_data_stream())
        .chain(stream::once(async { Ok(Bytes::from_static(AFTER)) }));
    Response::from_parts(parts, Body::from_stream(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_of_a_path_count() {
        assert!(is_enveloped("/agent/sandboxes/sandboxes/create"));
        assert!(is_enveloped("/api/v1/agent/sandboxes"));
        assert!(!is_enveloped("/agent/sandboxes/sandboxesx"));
        assert!(!is_enveloped("/sandboxes/create"));
        assert!(is_enveloped("/api/v1/auth/login/"));
        assert!(!is_enveloped("/api/v1/auth/login/swagger"));
    }
}
