//! One request with its redirects, within limits.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Body, Client, Response, StatusCode, Url};
use sandyard_core::ErrorKind;
use sandyard_service::{ServiceError, ServiceResult};

use super::resolver::{CheckedResolver, ClosedName};
use super::target::{self, AllowList};

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// Time to reach a host.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Silence after which the other side counts as gone.
const SILENCE: Duration = Duration::from_secs(60);
/// Time for a transfer as a whole.
const WHOLE_TIME: Duration = Duration::from_secs(3600);

/// The way to URLs that callers name.
#[derive(Debug)]
pub(crate) struct Outside {
    client: Client,
    allowed: AllowList,
}

/// What a URL gave.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The content, on its way.
    pub(crate) response: Response,
    /// Its announced size.
    pub(crate) size: Option<u64>,
}

impl Outside {
    /// Makes a client; `hosts` are those the operator vouches for.
    pub(crate) fn new(hosts: &[String]) -> ServiceResult<Self> {
        let allowed = AllowList::new(hosts);
        let failed = |source: Box<dyn Error + Send + Sync>| {
            ServiceError::new(ErrorKind::Internal, "no URL can be fetched here").source(source)
        };
        // Another part of the program may have chosen one before; any does.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let resolver = CheckedResolver::new(allowed.clone()).map_err(failed)?;
        let client = Client::builder()
            .dns_resolver(resolver)
            // A proxy would resolve names itself and reach what we may not.
            .no_proxy()
            // Each of them is checked like the first URL.
            .redirect(Policy::none())
            // Connections are not kept: a name must be checked whenever it is used.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_TIME)
            .read_timeout(SILENCE)
            .timeout(WHOLE_TIME)
            .user_agent(concat!("sandyard/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(error.into()))?;
        Ok(Self { client, allowed })
    }

    /// Fetches what a URL leads to.
    ///
    /// # Errors
    ///
    /// `invalid` for a URL that no caller may name, `bad_request` when its host does not give the file.
    pub(crate) async fn get(&self, field: &'static str, url: &str) -> ServiceResult<Fetched> {
        let mut url = target::read(field, url, &self.allowed)?;
        for _ in 0..=MAX_REDIRECTS {
            let sent = self.client.get(url.clone()).send().await;
            let response = sent.map_err(|error| refused(field, &url, error))?;
            let status = response.status();
            if status.is_success() {
                let size = response.content_length();
                return Ok(Fetched { response, size });
            }
            url = match next_url(&url, &response) {
                Some(next) => next,
                None => return Err(unwilling(field, &url, status)),
            };
            target::check(field, &url, &self.allowed)?;
        }
        Err(ServiceError::invalid(
            field,
            format!("the URL redirects more than {MAX_REDIRECTS} times"),
        ))
    }

    /// Fills a URL with a PUT. A redirect is an error: the content is gone by then.
    ///
    /// # Errors
    ///
    /// As [`Outside::get`].
    pub(crate) async fn put(
        &self,
        field: &'static str,
        url: &str,
        size: u64,
        content: Body,
    ) -> ServiceResult<StatusCode> {
        let url = target::read(field, url, &self.allowed)?;
        let request = self
            .client
            .put(url.clone())
            // Object stores refuse a PUT without a length.
            .header(CONTENT_LENGTH, size)
            .header(CONTENT_TYPE, "application/octet-stream")
            .body(content);
        let response = request
            .send()
            .await
            .map_err(|error| refused(field, &url, error))?;
        match response.status() {
            status if status.is_success() => Ok(status),
            status => Err(unwilling(field, &url, status)),
        }
    }
}

/// Where a redirect leads.
fn next_url(url: &Url, response: &Response) -> Option<Url> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    is_redirect.then(|| url.join(location).ok()).flatten()
}

/// The host does not give or take the file.
fn unwilling(field: &'static str, url: &Url, status: StatusCode) -> ServiceError {
    let mut error = ServiceError::new(
        ErrorKind::BadRequest,
        format!("{} answered {status}", shown(url)),
    );
    error.field = Some(field);
    error
}

/// The host was not reached, or the resolver refused it.
fn refused(field: &'static str, url: &Url, error: reqwest::Error) -> ServiceError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(at) = cause {
        if at.is::<ClosedName>() {
            return target::closed(field, url.host_str().unwrap_or_default());
        }
        cause = at.source();
    }
    let (kind, what) = if error.is_timeout() {
        (ErrorKind::TimedOut, "took too long")
    } else {
        (ErrorKind::BadRequest, "could not be reached")
    };
    // A presigned URL is a secret, so the error goes on without it.
    let mut refusal =
        ServiceError::new(kind, format!("{} {what}", shown(url))).source(error.without_url());
    refusal.field = Some(field);
    refusal
}

/// A URL without what may be secret in it.
fn shown(url: &Url) -> String {
    format!("`{}`", url.host_str().unwrap_or_default())
}
