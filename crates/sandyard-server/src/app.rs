//! What every handler can reach.

use std::net::SocketAddr;
use std::sync::Arc;

use sandyard_auth::Auth;
use sandyard_service::Service;

/// Whether credentials are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// On loopback the native and Docker-style dialects are open; everywhere else credentials are needed.
    Auto,
    /// Always.
    Required,
}

/// Settings of the HTTP side.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where clients reach this server, if that is not what their `Host` says.
    pub public_url: Option<String>,
    /// Previews are at `{port}-{id}.{domain}`.
    pub domain: String,
    /// Port of the tool server in every sandbox.
    pub mcp_port: u16,
    /// Port of VS Code in every sandbox.
    pub vscode_port: u16,
    /// Whether credentials are asked for.
    pub auth_mode: AuthMode,
    /// Largest JSON body.
    pub max_json_bytes: usize,
    /// Requests a second for one caller; 0: any number.
    pub rate_limit: u32,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            public_url: None,
            domain: "localhost".to_owned(),
            mcp_port: 6060,
            vscode_port: 9000,
            auth_mode: AuthMode::Auto,
            // A file of some size may come inside JSON through write-file.
            max_json_bytes: 64 << 20,
            rate_limit: 0,
        }
    }
}

/// The socket a request came in by; an extension of every request.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it speaks TLS.
    pub is_tls: bool,
    /// Who is at the other end.
    pub peer: SocketAddr,
}

impl Listener {
    /// Says whether only this host can reach it.
    pub fn is_loopback(&self) -> bool {
        self.address.ip().is_loopback()
    }
}

/// What every handler can reach. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    auth: Auth,
    settings: ServerSettings,
}

impl App {
    /// Puts the pieces together.
    pub fn new(service: Service, auth: Auth, settings: ServerSettings) -> Self {
        Self(Arc::new(Inner {
            service,
            auth,
            settings,
        }))
    }

    /// The lifecycle.
    pub fn service(&self) -> &Service {
        &self.0.service
    }

    /// Who is asking.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// Settings in force.
    pub fn settings(&self) -> &ServerSettings {
        &self.0.settings
    }
}
