//! Every route on one page, and the table tests are made from.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use sandyard_core::ErrorKind;

use crate::app::App;
use crate::error::{ErrorBody, PartialOutputFields, error_response};
use crate::middleware::gate::{self, Gate};
use crate::middleware::{access_log, forwarded, panics, request_id};
pub(crate) use crate::mounted::{Mounted, mount, mount_plain};
use crate::need::Need;
use crate::{
    accounts, docker, e2b, enveloped, files, health, info, internal, mcp, metrics, native, openapi,
    preview, stream,
};

/// The route that takes a whole file as JSON.
const WRITE_FILE: &str = "/sandboxes/write-file";

/// One route, as the tenant matrix sees it.
#[derive(Clone, Debug)]
pub struct RouteEntry {
    /// Its method; `ANY` for all of them.
    pub method: String,
    /// Its path, with `{names}`.
    pub path: String,
    /// Its operation id; the path when it has none.
    pub operation: String,
    /// What it asks of its caller.
    pub need: Need,
    /// Whether it asks that on an open listener too.
    pub is_strict: bool,
}

/// Every route there is.
pub(crate) fn all() -> Vec<Mounted> {
    let mut routes: Vec<_> = native::routes().into_iter().map(with_room).collect();
    routes.extend(files::routes());
    routes.extend(stream::routes());
    routes.extend(enveloped::routes(&routes));
    routes.extend(mcp::routes());
    routes.extend(docker::routes());
    routes.extend(e2b::routes());
    routes.extend(internal::routes());
    routes.extend(accounts::routes());
    routes.extend(health::routes());
    routes.extend(info::routes());
    routes.extend(metrics::routes());
    routes.extend(openapi::routes());
    routes
}

/// Gives the one route that takes a whole file as JSON the room the operator set.
fn with_room(mounted: Mounted) -> Mounted {
    let is_file = mounted.paths.iter().any(|(path, _)| path == WRITE_FILE);
    if is_file {
        mounted.with_max_body(None)
    } else {
        mounted
    }
}

/// Every route as a table.
pub fn table() -> Vec<RouteEntry> {
    all().iter().flat_map(Mounted::entries).collect()
}

/// The whole server as one service.
pub fn router(app: App) -> Router {
    let mut router = Router::<App>::new();
    for mounted in all() {
        let gate = Gate::new(&app, &mounted);
        let most = app.settings().max_json_bytes;
        let max_body = mounted.max_body.map_or(most, |max| max.min(most));
        let methods = mounted
            .methods
            .clone()
            .route_layer(DefaultBodyLimit::max(max_body))
            .route_layer(from_fn_with_state(gate, gate::guard));
        for (path, _) in &mounted.paths {
            router = router.route(path, methods.clone());
            if let Some(other) = other_slash(path) {
                router = router.route(&other, methods.clone());
            }
        }
    }
    let router = router
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(app.settings().max_json_bytes))
        .layer(from_fn(request_id::refuse_malformed))
        .layer(from_fn(panics::catch))
        .layer(from_fn(enveloped::wrap))
        .layer(from_fn(e2b::translate))
        .layer(from_fn_with_state(app.clone(), e2b::data::intercept))
        .layer(from_fn_with_state(app.clone(), preview::intercept))
        .layer(from_fn(access_log::log))
        .layer(from_fn(request_id::name))
        .layer(from_fn_with_state(app.clone(), forwarded::believe))
        .with_state(app.clone());
    // Before the router, since it changes paths.
    Router::new()
        .fallback_service(router)
        .layer(from_fn_with_state(app, e2b::enter))
}

/// The same path with a slash at its end, or without; none where it would mean something else.
fn other_slash(path: &str) -> Option<String> {
    match path.strip_suffix('/') {
        Some("") => None,
        Some(without) => Some(without.to_owned()),
        None if path.contains("{*") => None,
        None => Some(format!("{path}/")),
    }
}

async fn not_found(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(200).collect();
    error_response(
        StatusCode::NOT_FOUND,
        ErrorBody {
            detail: format!("there is nothing at {path}"),
            code: ErrorKind::NotFound.code().to_owned(),
            hint: Some("GET /docs lists what there is".to_owned()),
            field: None,
            partial_output: PartialOutputFields::default(),
        },
    )
}

async fn not_allowed(request: Request) -> Response {
    error_response(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorBody {
            detail: format!("{} is not possible here", request.method()),
            code: "method_not_allowed".to_owned(),
            hint: Some("the `Allow` header lists what is".to_owned()),
            field: None,
            partial_output: PartialOutputFields::default(),
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn operation_ids_are_unique() {
        let mut seen = BTreeSet::new();
        for entry in table() {
            assert!(seen.insert(entry.operation.clone()), "{entry:?}");
        }
    }

    #[test]
    fn only_files_may_be_as_long_as_the_operator_says() {
        let long: Vec<_> = all()
            .iter()
            .filter(|mounted| mounted.max_body.is_none())
            .flat_map(Mounted::entries)
            .map(|entry| entry.path)
            .collect();
        assert!(long.iter().any(|path| path == WRITE_FILE));
        assert!(long.iter().all(|path| path.ends_with("/write-file")));
        for mounted in all().iter().filter(|mounted| mounted.need == Need::Nothing) {
            assert!(mounted.max_body.is_some(), "{mounted:?}");
        }
    }

    #[test]
    fn slashes_at_the_end_make_no_difference() {
        assert_eq!(other_slash("/a").as_deref(), Some("/a/"));
        assert_eq!(other_slash("/a/").as_deref(), Some("/a"));
        assert_eq!(other_slash("/"), None);
        assert_eq!(other_slash("/p/{*rest}"), None);
    }
}
