//! What stands before every route: who is asking, and may that one do this?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::RequestExt;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sandyard_core::{Caller, ErrorKind, Role};
use sandyard_service::{ServiceError, VOLUME_TOKEN_PREFIX};
use sandyard_store::model::NewAuditEntry;

use super::request_id::RequestId;
use super::{held_answer, open_listener};
use crate::access::{Access, Authenticated};
use crate::app::{App, AuthMode};
use crate::audit::{self, Note};
use crate::error::{ApiError, ApiResult};
use crate::extract::RequestMemory;
use crate::listen::Listener;
use crate::rate_limit::Allowance;
use crate::route::Route;

/// Who asked, for the access log; an extension of answers.
#[derive(Clone, Debug)]
pub(crate) struct CallerName {
    /// The user.
    pub(crate) name: String,
    /// What the credentials are, with their id: `key:…`, `session:…`.
    pub(crate) via: String,
}

/// What a route's gate knows.
#[derive(Debug)]
pub(crate) struct Gate {
    app: App,
    access: Access,
    is_strict: bool,
    has_own_audit: bool,
    /// The audit's words for each method.
    verbs: BTreeMap<String, String>,
}

/// Credentials of a request.
enum Credentials {
    /// A token or key.
    Credential(String),
    /// None, on a listener that requires none; with an error if the request may not use that.
    Open(ApiResult<()>),
    /// The request has no credentials.
    Missing,
}

impl Gate {
    pub(crate) fn new(app: &App, route: &Route) -> Arc<Self> {
        Arc::new(Self {
            app: app.clone(),
            access: route.access,
            is_strict: route.is_strict,
            has_own_audit: route.has_own_audit,
            verbs: route
                .entries()
                .into_iter()
                .map(|entry| (entry.method, audit::verb(&entry.operation)))
                .collect(),
        })
    }

    /// Reads the credentials of a request, before anything is awaited.
    fn read_credentials(&self, request: &Request) -> ApiResult<Credentials> {
        match credential(request.headers())? {
            Some(credential) => Ok(Credentials::Credential(credential)),
            None if self.is_open(request) => Ok(Credentials::Open(open_listener::check(
                request,
                &self.app.settings().domain,
            ))),
            None => Ok(Credentials::Missing),
        }
    }

    /// Authenticates the caller and checks its permission.
    async fn admit(
        &self,
        credentials: Credentials,
        volume: Option<&str>,
    ) -> ApiResult<Option<Caller>> {
        let auth = self.app.auth();
        let needed = match self.access {
            Access::Public => return Ok(None),
            Access::Node => {
                let Credentials::Credential(token) = credentials else {
                    return Err(missing());
                };
                auth.check_node(&token)?;
                return Ok(Some(Caller::system()));
            }
            Access::Scope(scope) | Access::Admin(scope) | Access::Volume(scope) => scope,
        };
        let caller = match credentials {
            Credentials::Credential(token) if token.starts_with(VOLUME_TOKEN_PREFIX) => {
                return self.opener(&token, volume).await.map(Some);
            }
            Credentials::Credential(credential) => auth.authenticate(&credential).await?,
            Credentials::Open(check) => check.map(|()| Caller::local())?,
            Credentials::Missing => return Err(missing()),
        };
        if !caller.has(needed) {
            return Err(ApiError::new(
                ErrorKind::Forbidden,
                format!("these credentials lack the scope `{needed}`"),
            )
            .hint(format!(
                "make a key that has it with `sandyard key add --scope {needed} NAME`"
            )));
        }
        if matches!(self.access, Access::Admin(_)) && !caller.is_admin() {
            return Err(ApiError::new(ErrorKind::Forbidden, "this is for admins"));
        }
        Ok(Some(caller))
    }

    /// The caller with the token of the volume that a path names: it has the owner's rights on the volume, and no others.
    async fn opener(&self, token: &str, volume: Option<&str>) -> ApiResult<Caller> {
        let (Access::Volume(scope), Some(id)) = (self.access, volume) else {
            return Err(ApiError::new(
                ErrorKind::Unauthenticated,
                "the token of a volume opens its contents and nothing else",
            ));
        };
        let volume = self.app.service().volume_opened_by(id, token).await?;
        Ok(Caller {
            name: volume.owner,
            role: Role::User,
            scopes: vec![scope],
            via: format!("volume:{}", volume.id),
        })
    }

    fn is_open(&self, request: &Request) -> bool {
        let listener = request.extensions().get::<Listener>();
        !self.is_strict
            && self.app.settings().auth_mode == AuthMode::Auto
            && listener.is_some_and(Listener::is_loopback)
    }

    /// Keeps one caller from using up the server. Says what is left, or answers.
    fn check_rate(
        &self,
        caller: Option<&Caller>,
        peer: &str,
    ) -> Result<Option<Allowance>, Box<Response>> {
        let name = match caller {
            // Other nodes and this host's own programs act for many.
            Some(caller) if caller.via == "system" => return Ok(None),
            Some(caller) => format!("user {}", caller.name),
            None => format!("address {peer}"),
        };
        let taken = self.app.rate_limit().take(&name, Instant::now());
        taken.map_err(|refusal| {
            let mut error = ServiceError::new(ErrorKind::RateLimited, "too many requests")
                .hint("wait as long as `Retry-After` says");
            error.retry_after_s = Some(refusal.retry_after_s);
            let mut response = ApiError::from(error).into_response();
            refusal.allowance.write(response.headers_mut());
            Box::new(response)
        })
    }
}

/// Lets a request through to its route, or answers why not.
pub(crate) async fn guard(
    State(gate): State<Arc<Gate>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request
        .extensions()
        .get::<Listener>()
        .map(|listener| listener.peer.ip().to_string());
    let credentials = match gate.access {
        Access::Public => Ok(Credentials::Missing),
        _ => gate.read_credentials(&request),
    };
    let volume = match gate.access {
        Access::Volume(_) => volume_in_path(&mut request).await,
        _ => None,
    };
    let admitted = match credentials {
        Ok(credentials) => gate.admit(credentials, volume.as_deref()).await,
        Err(error) => Err(error),
    };
    let caller = match admitted {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    let allowance = match gate.check_rate(caller.as_ref(), peer.as_deref().unwrap_or("-")) {
        Ok(allowance) => allowance,
        Err(response) => return *response,
    };
    let _slot = match gate.access {
        // Health must answer when nothing else does.
        Access::Public => None,
        _ => match gate.app.request_slots().clone().try_acquire_owned() {
            Ok(slot) => Some(slot),
            Err(_) => return busy().into_response(),
        },
    };
    if let Some(caller) = &caller {
        request
            .extensions_mut()
            .insert(Authenticated(caller.clone()));
    }
    let payer = match &caller {
        Some(caller) => caller.name.clone(),
        None => format!("address {}", peer.as_deref().unwrap_or("-")),
    };
    let memory = gate.app.service().memory();
    let body = Arc::new(memory.hold(&payer));
    request.extensions_mut().insert(RequestMemory(body.clone()));
    let mut note = begin_note(&gate, &request, caller.as_ref(), peer);
    let (response, target) = audit::with_target(next.run(request)).await;
    // Answered, so nobody needs the request's body any more.
    body.shrink_to(0);
    let mut response = held_answer::account(memory, &payer, response).await;
    if let Some(note) = &mut note {
        note.finish(response.status().as_u16(), target);
    }
    if let Some(allowance) = allowance {
        allowance.write(response.headers_mut());
    }
    if let Some(caller) = caller {
        response.extensions_mut().insert(CallerName {
            name: caller.name,
            via: caller.via,
        });
    }
    response
}

/// The name in the path.
async fn volume_in_path(request: &mut Request) -> Option<String> {
    let params = request.extract_parts::<RawPathParams>().await.ok()?;
    let name = params.iter().find(|(key, _)| *key == "name");
    name.map(|(_, word)| word.to_owned())
}

/// Begins the audit entry of a request that may change something; the client may hang up before its end.
fn begin_note(
    gate: &Gate,
    request: &Request,
    caller: Option<&Caller>,
    address: Option<String>,
) -> Option<Note> {
    // A WebSocket runs a command or opens a terminal.
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD)
        && !request.headers().contains_key(header::UPGRADE);
    if is_reading || gate.access == Access::Node || gate.has_own_audit {
        return None;
    }
    let method = request.method().as_str();
    let verb = gate.verbs.get(method).or(gate.verbs.get("ANY"));
    let id = request.extensions().get::<RequestId>();
    let entry = NewAuditEntry {
        at_ms: gate.app.service().clock().now_ms(),
        actor: caller.map_or("-", |caller| &caller.name).to_owned(),
        via: caller.map_or("-", |caller| &caller.via).to_owned(),
        action: verb.cloned().unwrap_or_default(),
        target: None,
        status: audit::HUNG_UP.into(),
        request_id: id.map_or_else(String::new, |id| id.0.clone()),
        address,
    };
    Some(Note::begin(gate.app.audit(), entry))
}

/// The token or key of a request.
fn credential(headers: &HeaderMap) -> ApiResult<Option<String>> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let text = value.to_str().unwrap_or_default();
        return match text.split_once(' ') {
            // Nodes show theirs under a scheme of its own.
            Some((scheme, rest))
                if ["bearer", "node"].contains(&scheme.to_ascii_lowercase().as_str()) =>
            {
                Ok(Some(rest.trim().to_owned()))
            }
            _ => Err(ApiError::new(
                ErrorKind::Unauthenticated,
                "`Authorization` must be `Bearer` and a token or key",
            )),
        };
    }
    match headers.get("x-api-key") {
        Some(value) => match value.to_str() {
            Ok(key) => Ok(Some(key.to_owned())),
            Err(_) => Err(ApiError::new(
                ErrorKind::Unauthenticated,
                "`X-API-Key` holds characters that no key has",
            )),
        },
        None => Ok(None),
    }
}

fn missing() -> ApiError {
    ApiError::new(ErrorKind::Unauthenticated, "credentials are missing")
        .hint("send `Authorization: Bearer <token>` or `X-API-Key: <key>`")
}

fn busy() -> ApiError {
    ApiError::new(ErrorKind::Unavailable, "too many requests are under way")
        .hint("wait as long as `Retry-After` says")
}
