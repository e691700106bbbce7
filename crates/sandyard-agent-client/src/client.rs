//! The client's handle.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use http::request;
use sandyard_wire::json::encode_base64;
use sandyard_wire::routes::header;

use crate::endpoint::Endpoint;
use crate::error::{ClientError, Result};
use crate::limits::Limits;
use crate::pool::Pool;

/// A client of one agent. Clones share their connections.
#[derive(Clone)]
pub struct AgentClient {
    pub(crate) shared: Arc<Shared>,
    pub(crate) token: Option<HeaderValue>,
    pub(crate) user: Option<User>,
}

/// What clones share.
pub(crate) struct Shared {
    pub(crate) endpoint: Endpoint,
    pub(crate) limits: Limits,
    pub(crate) pool: Pool,
}

/// The user on whose behalf requests act, in the form of both kinds of routes.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    authorization: HeaderValue,
}

impl User {
    pub(crate) fn new(name: &str) -> Self {
        let text = format!("Basic {}", encode_base64(format!("{name}:").as_bytes()));
        let authorization =
            HeaderValue::try_from(text).expect("base64 holds only characters a header may have");
        Self {
            name: name.to_owned(),
            authorization,
        }
    }
}

impl AgentClient {
    /// Creates a client. It connects with the first call.
    pub fn new(endpoint: Endpoint) -> Self {
        Self::with_limits(endpoint, Limits::default())
    }

    /// Creates a client with these limits.
    pub fn with_limits(endpoint: Endpoint, limits: Limits) -> Self {
        let pool = Pool::new(limits.max_idle_connections);
        Self {
            shared: Arc::new(Shared {
                endpoint,
                limits,
                pool,
            }),
            token: None,
            user: None,
        }
    }

    /// Creates a client without a time limit for silence on streams and transfers, for sandboxes that may be paused meanwhile.
    pub fn patient(endpoint: Endpoint) -> Self {
        let limits = Limits {
            silence_timeout: None,
            ..Limits::default()
        };
        Self::with_limits(endpoint, limits)
    }

    /// Returns a client that presents an access token. The host's own socket needs none.
    pub fn with_access_token(mut self, token: &str) -> Result<Self> {
        let mut value = HeaderValue::try_from(token).map_err(|_| ClientError::Request {
            detail: "the access token has characters that are not allowed in a header".to_owned(),
        })?;
        value.set_sensitive(true);
        self.token = Some(value);
        Ok(self)
    }

    /// Returns a client that acts as this user instead of the sandbox's default one.
    pub fn as_user(&self, name: &str) -> Self {
        Self {
            user: Some(User::new(name)),
            ..self.clone()
        }
    }

    /// Returns where the agent is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Starts a request with the common headers. Headers that the endpoint requires override them.
    pub(crate) fn request(&self, method: http::Method, uri: &str) -> request::Builder {
        let mut builder = http::Request::builder()
            .method(method)
            .uri(uri)
            .header(http::header::HOST, "localhost");
        if let Some(token) = &self.token {
            builder = builder.header(header::ACCESS_TOKEN, token);
        }
        if let Some(user) = &self.user {
            builder = builder.header(http::header::AUTHORIZATION, &user.authorization);
        }
        if let (Some(required), Some(headers)) = (self.endpoint().headers(), builder.headers_mut())
        {
            headers.extend(required.clone());
        }
        builder
    }
}

impl fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentClient")
            .field("endpoint", &self.shared.endpoint)
            .field("user", &self.user.as_ref().map(|user| &user.name))
            .finish_non_exhaustive()
    }
}
