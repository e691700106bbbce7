//! What other nodes of the same store ask: this node's providers, and the agents behind them.
//!
//! A node is asked at `{url}/at/{location}`, below which `sandyard-providers` has its own paths, since one node may
//! reach several places.

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

/// What an import says beside its archive.
#[derive(Debug, Deserialize)]
struct ImportQuery {
    name: Option<String>,
}

/// Finds this node's provider for a place.
fn provider(app: &App, location: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    app.service().local_provider(location).ok_or_else(|| {
        let kind = ProviderErrorKind::Unavailable;
        ProviderError::new(kind, "this node does not reach that place")
    })
}

fn refuse(error: ProviderError) -> Response {
    answer(node::refusal(error))
}

fn answer((status, json): (StatusCode, Bytes)) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, json).into_response()
}

/// Does one call of a provider.
async fn call_provider(
    State(app): State<App>,
    Path((location, verb)): Path<(String, String)>,
    Query(ImportQuery { name }): Query<ImportQuery>,
    body: Body,
) -> Response {
    let provider = match provider(&app, &location) {
        Ok(provider) => provider,
        Err(error) => return refuse(error),
    };
    if let (Verb::ImportTemplate, Some(name)) = (verb.parse().unwrap_or(Verb::Agent), name) {
        let pieces = body.into_data_stream().map_err(std::io::Error::other);
        let archive = Box::pin(StreamReader::new(pieces));
        return answer(node::serve_import(&*provider, &name, archive).await);
    }
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        let kind = ProviderErrorKind::Invalid;
        return refuse(ProviderError::new(
            kind,
            "the request is too large or broke off",
        ));
    };
    if verb.parse() == Ok(Verb::SetNetwork) {
        return answer(network::set_network(&app, &body).await);
    }
    // A caller that hangs up must not leave a call half done.
    let work = tokio::spawn(async move { node::serve_verb(&*provider, &verb, body).await });
    match work.await {
        Ok(done) => answer(done),
        Err(error) => {
            let failure = ProviderError::new(ProviderErrorKind::Failed, "the call failed");
            refuse(failure.source(error))
        }
    }
}

/// Opens a way to an agent.
async fn open_tunnel(
    State(app): State<App>,
    Path((location, id)): Path<(String, String)>,
    shutdown: Shutdown,
    mut request: Request,
) -> Response {
    let provider = match provider(&app, &location) {
        Ok(provider) => provider,
        Err(error) => return refuse(error),
    };
    let is_asked = request
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(UPGRADE.as_bytes()));
    if !is_asked {
        let kind = ProviderErrorKind::Invalid;
        return refuse(ProviderError::new(kind, "the upgrade was not asked for"));
    }
    let agent = match node::tunnel(&*provider, &id).await {
        Ok(agent) => agent,
        Err(error) => return refuse(error),
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
