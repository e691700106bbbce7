//! `GET /info`: what clients are to know about this server.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::links::Links;
use crate::model::provider::ProviderDetail;

/// What clients are to know about this server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerInfo {
    version: &'static str,
    /// For programs written for E2B.
    e2b: E2bInfo,
    /// Where sandboxes run, the default first.
    providers: Vec<ProviderDetail>,
}

/// How a program written for E2B is pointed at this server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct E2bInfo {
    /// Where E2B's API is: `E2B_API_URL` and `E2B_SANDBOX_URL`.
    url: String,
    /// What stands behind `{port}-{id}.` in the hosts of ports.
    domain: String,
    /// Whether the domain alone, as `E2B_DOMAIN`, is enough: names below it are served with TLS.
    is_domain_enough: bool,
    /// Whether the API has a listener of its own. If not, it is below a path, which some clients drop.
    has_listener: bool,
}

/// Tells how this server is reached, and where its sandboxes run.
#[utoipa::path(
    get, path = "/info", operation_id = "get_info", tag = "operations",
    responses((status = 200, description = "That.", body = ServerInfo))
)]
pub(crate) async fn get_info(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
) -> Json<ServerInfo> {
    let settings = app.settings();
    let domain = settings.e2b_domain.clone();
    let url = match (settings.is_e2b_domain_enough, settings.has_e2b_listener) {
        (true, _) => format!("https://api.{domain}"),
        (false, true) => {
            let port = domain.rsplit_once(':').map(|(_, port)| port);
            links.at_port(settings.e2b_address, port)
        }
        (false, false) => links.below(crate::e2b::PREFIX),
    };
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION"),
        e2b: E2bInfo {
            url,
            domain,
            is_domain_enough: settings.is_e2b_domain_enough,
            has_listener: settings.has_e2b_listener,
        },
        providers: app
            .service()
            .providers()
            .iter()
            .map(|provider| ProviderDetail::new(provider, caller.is_admin()))
            .collect(),
    })
}
