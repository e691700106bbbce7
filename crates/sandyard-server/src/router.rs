//! Every route on one page, the service that serves them, and the document that describes them.

use std::sync::LazyLock;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use sandyard_core::ErrorKind;
use sandyard_providers::Registry;
use serde_json::Value;
use utoipa_axum::routes;

use crate::access::Access;
use crate::app::App;
use crate::error::{ApiError, ErrorBody, error_response};
use crate::json_body::IgnoreUnknownFields;
use crate::middleware::gate::{self, Gate};
use crate::middleware::{access_log, forwarded, panics, request_id};
use crate::openapi::StaticPage;
pub use crate::route::RouteEntry;
use crate::route::{Route, route, undocumented_route};
use crate::{
    accounts, docker, e2b, envelope, files, internal, mcp, native, openapi, operations, preview,
    stream,
};

/// All routes.
fn all() -> Vec<Route> {
    let mut routes = native::routes();
    routes.extend(files::routes());
    routes.extend(stream::routes());
    routes.extend(envelope::routes(&routes));
    routes.extend(mcp::routes());
    routes.extend(docker::routes());
    routes.extend(e2b::routes().into_iter().map(ignore_unknown_fields));
    routes.extend(internal::routes());
    routes.extend(accounts::routes());
    routes.extend(operations::routes());
    routes.push(route(Access::Public, routes!(get_openapi)));
    routes.push(undocumented_route(
        Access::Public,
        "/docs",
        get(openapi::get_docs),
    ));
    routes
}

/// E2B's clients send fields that only a later version of its API knows.
fn ignore_unknown_fields(route: Route) -> Route {
    Route {
        methods: route.methods.layer(Extension(IgnoreUnknownFields)),
        ..route
    }
}

/// All routes as a table.
pub fn table() -> Vec<RouteEntry> {
    all().iter().flat_map(Route::entries).collect()
}

/// Get this OpenAPI document
///
/// Returns the OpenAPI 3.1 description of all operations of this server, compressed if the client accepts gzip.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI document returned.", body = Object))
)]
async fn get_openapi(headers: HeaderMap) -> Response {
    static DOCUMENT: LazyLock<StaticPage> = LazyLock::new(|| {
        let text = openapi_for(Registry::BUILTIN).to_string();
        StaticPage::new("application/json", text)
    });
    DOCUMENT.respond(&headers)
}

/// The OpenAPI document of a server with these providers.
pub fn openapi_for(registry: Registry) -> Value {
    let mut document = openapi::build(&all());
    openapi::name_providers(&mut document, &registry.names());
    document
}

/// The whole server as one service.
pub fn router(app: App) -> Router {
    let mut router = Router::<App>::new();
    for route in all() {
        let gate = Gate::new(&app, &route);
        let default_max = app.settings().max_json_bytes;
        let max_body = route
            .max_body
            .map_or(default_max, |max| max.min(default_max));
        let methods = route
            .methods
            .clone()
            .route_layer(DefaultBodyLimit::max(max_body))
            .route_layer(from_fn_with_state(gate, gate::guard));
        for (path, _) in &route.paths {
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
        .layer(from_fn(envelope::wrap))
        .layer(from_fn(e2b::translate))
        .layer(from_fn_with_state(app.clone(), e2b::data::intercept))
        .layer(from_fn_with_state(app.clone(), preview::intercept))
        .layer(from_fn(access_log::log))
        .layer(from_fn(request_id::name))
        .layer(from_fn_with_state(app.clone(), forwarded::believe))
        .with_state(app.clone());
    // Dispatch comes before the router because it changes paths.
    Router::new()
        .fallback_service(router)
        .layer(from_fn_with_state(app, e2b::dispatch))
}

/// The same path with the slash at its end added or removed; none where that would be another resource.
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
    ApiError::new(ErrorKind::NotFound, format!("there is nothing at {path}"))
        .hint("GET /docs lists all endpoints")
        .into_response()
}

async fn not_allowed(request: Request) -> Response {
    error_response(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorBody {
            detail: format!("{} is not possible here", request.method()),
            code: "method_not_allowed".to_owned(),
            hint: Some("the `Allow` header lists what is".to_owned()),
            ..ErrorBody::default()
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
            .filter(|route| route.max_body.is_none())
            .flat_map(Route::entries)
            .map(|entry| entry.path)
            .collect();
        assert!(long.iter().any(|path| path == "/sandboxes/write-file"));
        assert!(long.iter().all(|path| path.ends_with("/write-file")));
        for route in all().iter().filter(|route| route.access == Access::Public) {
            assert!(route.max_body.is_some(), "{route:?}");
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
