//! URLs of a sandbox's ports, as this client can reach them.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{header, uri::Authority};
use sandyard_core::SandboxId;
use sandyard_preview::names::TOKEN_QUERY;
use sandyard_preview::{Scheme, UrlForm, url_for};
use std::convert::Infallible;
use std::net::IpAddr;

use crate::app::App;
use crate::listen::Listener;
use crate::middleware::open_listener::is_own_host;

/// The domain that stands for «none was set».
const NO_DOMAIN: &str = "localhost";
/// What the URL of a port without a host of its own contains.
const PATH_FORM: &str = "/p/";
/// How long a signed link is good.
const LINK_LIFE_MS: i64 = 24 * 60 * 60 * 1000;

/// Makes URLs of ports: below the domain if there is one, below `/p/` if not.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    app: App,
    scheme: Scheme,
    /// The server's own host and port, as the client names it.
    host: String,
    /// Whether the client is on this host, so that its browser resolves names below `localhost` to the server.
    is_local: bool,
}

impl FromRequestParts<App> for Links {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let listener = parts.extensions.get::<Listener>();
        let public = app.settings().public_url.as_deref();
        let (is_tls, host) = match public.and_then(|url| url.split_once("://")) {
            Some((scheme, host)) => (scheme == "https", host.trim_end_matches('/').to_owned()),
            None => {
                let address = || listener.map(|listener| listener.address.to_string());
                let host = host_of(parts).or_else(address);
                let host = host.unwrap_or_else(|| NO_DOMAIN.to_owned());
                (listener.is_some_and(|listener| listener.is_tls), host)
            }
        };
        Ok(Self {
            app: app.clone(),
            scheme: scheme_of(is_tls),
            is_local: public.is_none() && is_local(listener, host.parse().ok().as_ref()),
            host,
        })
    }
}

impl Links {
    /// The URL of a place on this server.
    pub(crate) fn below(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme.as_str(), self.host)
    }

    /// The URL of another listener of this server: at another port or the usual one, and at an address of its own or
    /// where the client came to.
    pub(crate) fn at_port(&self, address: Option<IpAddr>, port: Option<&str>) -> String {
        let name = match (address, self.host.rsplit_once(':')) {
            (Some(IpAddr::V4(address)), _) => address.to_string(),
            (Some(IpAddr::V6(address)), _) => format!("[{address}]"),
            (None, Some((name, digits))) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                name.to_owned()
            }
            _ => self.host.clone(),
        };
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{}://{name}{port}", self.scheme.as_str())
    }

    /// The URL of a port.
    pub(crate) fn port(&self, id: &SandboxId, port: u16) -> String {
        let domain = &self.app.settings().domain;
        if domain.is_empty() || domain == NO_DOMAIN {
            return url_for(UrlForm::Path, self.scheme, &self.host, id.as_str(), port);
        }
        self.own_host(domain, id, port)
    }

    /// The URL of a port on a host of its own below a domain.
    fn own_host(&self, domain: &str, id: &SandboxId, port: u16) -> String {
        let base = match self.host.rsplit_once(':') {
            Some((_, listener_port)) if listener_port.bytes().all(|b| b.is_ascii_digit()) => {
                format!("{domain}:{listener_port}")
            }
            _ => domain.to_owned(),
        };
        url_for(UrlForm::PortFirst, self.scheme, &base, id.as_str(), port)
    }

    /// The URL of a port for a browser, signed like [`Self::signed_port`]. On a host of its own where the browser can resolve it:
    /// below `/p/`, absolute paths lead out of the application, and modules, storage and cookies do not work.
    pub(crate) fn signed_browser_port(&self, id: &SandboxId, port: u16) -> String {
        let signed = self.signed_port(id, port);
        let url = self.port(id, port);
        match signed.strip_prefix(&url) {
            Some(rest) if self.is_local && url.contains(PATH_FORM) => {
                format!(
                    "{}/{}",
                    self.own_host(NO_DOMAIN, id, port),
                    rest.trim_start_matches('/')
                )
            }
            _ => signed,
        }
    }

    /// The URL of any port, with `{port}` for its number.
    pub(crate) fn port_pattern(&self, id: &SandboxId) -> String {
        const SOME: u16 = 54321;
        let url = self.port(id, SOME);
        // The number stands right before the id or right after it, and elsewhere it means something else.
        let first = format!("{SOME}-{id}");
        let last = format!("{id}/{SOME}");
        url.replacen(&first, &format!("{{port}}-{id}"), 1).replacen(
            &last,
            &format!("{id}/{{port}}"),
            1,
        )
    }

    /// The same with a token, for people without credentials; valid for a day.
    pub(crate) fn signed_port(&self, id: &SandboxId, port: u16) -> String {
        let until_ms = self.app.service().clock().now_ms() + LINK_LIFE_MS;
        let token = self.app.auth().sign_preview(id, port, until_ms);
        if port == self.app.settings().mcp_port {
            return format!("{}?{TOKEN_QUERY}={token}", self.mcp(id));
        }
        let url = self.port(id, port);
        let slash = if url.ends_with('/') { "" } else { "/" };
        format!("{url}{slash}?{TOKEN_QUERY}={token}")
    }

    /// The URL of the tool server, as an MCP client takes it.
    pub(crate) fn mcp(&self, id: &SandboxId) -> String {
        let url = self.port(id, self.app.settings().mcp_port);
        format!("{}/mcp", url.trim_end_matches('/'))
    }

    /// The URL of VS Code.
    pub(crate) fn vscode(&self, id: &SandboxId) -> String {
        self.port(id, self.app.settings().vscode_port)
    }
}

/// Whether a client is on this host: behind a proxy or a tunnel, `localhost` is another host to its browser.
pub(crate) fn is_local(listener: Option<&Listener>, host: Option<&Authority>) -> bool {
    listener.is_some_and(Listener::is_loopback)
        && host.is_some_and(|host| is_own_host(host.host(), ""))
}

fn scheme_of(is_tls: bool) -> Scheme {
    if is_tls { Scheme::Https } else { Scheme::Http }
}

/// What the client calls us, if that can stand in a URL.
fn host_of(parts: &Parts) -> Option<String> {
    let sent = match parts.uri.authority() {
        Some(authority) => authority.as_str(),
        None => parts.headers.get(header::HOST)?.to_str().ok()?,
    };
    let authority: Authority = sent.parse().ok()?;
    // A name before `@` would be a trap in a link.
    (!authority.as_str().contains('@')).then(|| authority.to_string())
}
