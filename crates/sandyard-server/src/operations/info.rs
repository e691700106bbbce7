//! `GET /info`: what clients are to know about this server.

use crate::model::provider::ProviderDetail;
use crate::prelude::*;

/// Information about the server for clients.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerInfo {
    /// Version of the server.
    version: &'static str,
    /// User that the credentials of this request belong to.
    user: String,
    /// Whether that user is an admin.
    is_admin: bool,
    /// Addresses for clients of E2B.
    e2b: E2bInfo,
    /// Providers that run sandboxes, the default first.
    providers: Vec<ProviderDetail>,
}

/// Settings that point a client of E2B at this server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct E2bInfo {
    /// URL of the E2B-compatible API, for `E2B_API_URL` and `E2B_SANDBOX_URL`.
    url: String,
    /// Domain of sandbox ports: a port is reached at `{port}-{id}.` followed by this.
    domain: String,
    /// Whether setting `E2B_DOMAIN` alone is enough, because names below the domain are served with TLS.
    is_domain_enough: bool,
    /// Whether the API has a listener of its own. If not, it is below a path, which some clients drop.
    has_listener: bool,
}

/// Get information about the server
///
/// Returns the version of the server, how clients of E2B reach it, and its providers.
#[utoipa::path(
    get, path = "/info", tag = "operations",
    responses((status = 200, description = "Server information returned.", body = ServerInfo))
)]
pub(crate) async fn get_info(call: Call) -> Json<ServerInfo> {
    let settings = call.app.settings();
    let domain = settings.e2b_domain.clone();
    let url = match (settings.is_e2b_domain_enough, settings.has_e2b_listener) {
        (true, _) => format!("https://api.{domain}"),
        (false, true) => {
            let port = domain.rsplit_once(':').map(|(_, port)| port);
            call.links.at_port(settings.e2b_address, port)
        }
        (false, false) => call.links.below(crate::e2b::PREFIX),
    };
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION"),
        user: call.caller.name.clone(),
        is_admin: call.caller.is_admin(),
        e2b: E2bInfo {
            url,
            domain,
            is_domain_enough: settings.is_e2b_domain_enough,
            has_listener: settings.has_e2b_listener,
        },
        providers: call
            .service()
            .providers()
            .iter()
            .map(|provider| ProviderDetail::new(provider, call.caller.is_admin()))
            .collect(),
    })
}
