//! What almost every handler needs to know of its request.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sandyard_core::{Caller, ErrorKind};
use sandyard_service::{Live, Sandbox, Service, ServiceResult};

use crate::access::Authenticated;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::extract::sandbox_name;
use crate::links::Links;
use crate::noted_sandbox::note_sandbox;

/// A request that the gate has admitted: its caller, and what carries it out.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    /// Makes the URLs of the response.
    pub(crate) links: Links,
}

impl FromRequestParts<App> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let Some(Authenticated(caller)) = parts.extensions.get().cloned() else {
            let detail = "credentials are missing";
            return Err(ApiError::new(ErrorKind::Unauthenticated, detail));
        };
        let Ok(links) = Links::from_request_parts(parts, app).await;
        Ok(Self {
            app: app.clone(),
            caller,
            links,
        })
    }
}

impl Call {
    pub(crate) fn service(&self) -> &Service {
        self.app.service()
    }

    /// The sandbox of this name, whatever its status is.
    pub(crate) async fn inspect(&self, name: &str) -> ServiceResult<Sandbox> {
        let name = sandbox_name(name)?;
        let sandbox = self.service().inspect(&self.caller, name).await?;
        note_sandbox(sandbox.id.as_str());
        Ok(sandbox)
    }

    /// The sandbox of this name, running: a paused or stopped one is woken.
    pub(crate) async fn live(&self, name: &str) -> ServiceResult<Live> {
        let name = sandbox_name(name)?;
        let live = self.service().live(&self.caller, name).await?;
        note_sandbox(live.sandbox.id.as_str());
        Ok(live)
    }
}
