//! Requests of other nodes with the same store: calls of this node's providers, and connections to agents.
//!
//! They are at `{url}/at/{location}`, since one node may have several providers; `sandyard-providers` defines the paths below.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::TryStreamExt;
use hyper_util::rt::TokioIo;
use sandyard_provider::{Provider, ProviderError, ProviderErrorKind, Verb};
use sandyard_providers::node::{self, MAX_REQUEST, UPGRADE};
use serde::Deserialize;
use std::sync::Arc;
use tokio_util::io::StreamReader;

use crate::access::Access;
use crate::app::App;
use crate::extract::Query;
use crate::listen::Shutdown;
use crate::route::{Route, undocumented_route};

mod network;
mod reach;

pub(crate) use reach::reach;

/// The routes between nodes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        undocumented_route(
            Access::Node,
            "/at/{location}/internal/provider/{verb}",
            post(call_provider),
        ),
        undocumented_route(
            Access::Node,
            "/at/{location}/internal/agent/{id}",
            post(open_tunnel),
        ),
    ]
}

/// The query of an import; its body is the archive.
#[derive(Debug, Deserialize)]
struct ImportQuery {
    name: Option<String>,
}

/// Finds this node's provider for a location.
fn provider(app: &App, location: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    app.service().local_provider(location).ok_or_else(|| {
        let kind = ProviderErrorKind::Unavailable;
        ProviderError::new(kind, "this node has no provider for that location")
    })
}

fn failure(error: ProviderError) -> Response {
    respond(node::refusal(error))
}

fn respond((status, json): (StatusCode, Bytes)) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, json).into_response()
}

/// Executes a call of a provider.
async fn call_provider(
    State(app): State<App>,
    Path((location, verb)): Path<(String, String)>,
    Query(ImportQuery { name }): Query<ImportQuery>,
    body: Body,
) -> Response {
    let provider = match provider(&app, &location) {
        Ok(provider) => provider,
        Err(error) => return failure(error),
    };
    if let (Verb::ImportTemplate, Some(name)) = (verb.parse().unwrap_or(Verb::Agent), name) {
        let chunks = body.into_data_stream().map_err(std::io::Error::other);
        let archive = Box::pin(StreamReader::new(chunks));
        return respond(node::serve_import(&*provider, &name, archive).await);
    }
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        let kind = ProviderErrorKind::Invalid;
        return failure(ProviderError::new(
            kind,
            "the request is too large or broke off",
        ));
    };
    if verb.parse() == Ok(Verb::SetNetwork) {
        return respond(network::set_network(&app, &body).await);
    }
    // A caller that disconnects must not leave a call half done.
    let work = tokio::spawn(async move { node::serve_verb(&*provider, &verb, body).await });
    match work.await {
        Ok(done) => respond(done),
        Err(error) => {
            let panic = ProviderError::new(ProviderErrorKind::Failed, "the call failed");
            failure(panic.source(error))
        }
    }
}

/// Opens a connection to an agent.
async fn open_tunnel(
    State(app): State<App>,
    Path((location, id)): Path<(String, String)>,
    shutdown: Shutdown,
    mut request: Request,
) -> Response {
    let provider = match provider(&app, &location) {
        Ok(provider) => provider,
        Err(error) => return failure(error),
    };
    let is_upgrade = request
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(UPGRADE.as_bytes()));
    if !is_upgrade {
        let kind = ProviderErrorKind::Invalid;
        return failure(ProviderError::new(
            kind,
            "the request must ask for an upgrade",
        ));
    }
    let agent = match node::tunnel(&*provider, &id).await {
        Ok(agent) => agent,
        Err(error) => return failure(error),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        tokio::select! {
            _ = node::splice(TokioIo::new(upgraded), agent) => {}
            () = shutdown.wait() => {}
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(UPGRADE));
    response
}
