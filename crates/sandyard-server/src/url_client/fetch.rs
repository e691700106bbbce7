//! One request with its redirects, within limits.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Body, Client, RequestBuilder, Response, StatusCode, Url};
use sandyard_core::ErrorKind;
use sandyard_core::network::Target;
use sandyard_service::{ServiceError, ServiceResult};
use sandyard_tls::roots;

use super::reach::Reach;
use super::resolver::{self, CheckedResolver, ClosedName, LookUp, PORT};
use super::target;
use crate::error::chain;

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
pub(crate) struct UrlClient {
    client: Client,
    reach: Arc<Reach>,
}

/// What a URL gave.
#[derive(Debug)]
pub(crate) struct FetchedUrl {
    /// The content, on its way.
    pub(crate) response: Response,
    /// Its announced size.
    pub(crate) size: Option<u64>,
}

impl UrlClient {
    /// Makes a client; `hosts` are those the operator vouches for, `denied` those that nobody may reach.
    pub(crate) fn new(hosts: &[String], denied: &[Target]) -> ServiceResult<Self> {
        let reach = Reach::new(hosts, denied, sandyard_gateway::host_addresses);
        Self::with(reach, resolver::system().map_err(failed)?)
    }

    fn with(reach: Reach, look_up: LookUp) -> ServiceResult<Self> {
        let reach = Arc::new(reach);
        let resolver = CheckedResolver::new(look_up, reach.clone());
        let client = Client::builder()
            .tls_backend_preconfigured(roots::client_config(roots::host_roots()))
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
        Ok(Self { client, reach })
    }

    /// Fetches what a URL leads to.
    ///
    /// # Errors
    ///
    /// `invalid` for a URL that no caller may name, `bad_request` when its host does not give the file.
    pub(crate) async fn get(&self, field: &'static str, url: &str) -> ServiceResult<FetchedUrl> {
        let mut url = target::read(field, url, &self.reach)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = send(field, &url, self.client.get(url.clone())).await?;
            let status = response.status();
            if status.is_success() {
                let size = response.content_length();
                return Ok(FetchedUrl { response, size });
            }
            url = match next_url(&url, &response) {
                Some(next) => next,
                None => return Err(unwilling(field, &url, status)),
            };
            target::check(field, &url, &self.reach)?;
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
    /// As [`UrlClient::get`].
    pub(crate) async fn put(
        &self,
        field: &'static str,
        url: &str,
        size: u64,
        content: Body,
    ) -> ServiceResult<StatusCode> {
        let url = target::read(field, url, &self.reach)?;
        let request = self
            .client
            .put(url.clone())
            // Object stores refuse a PUT without a length.
            .header(CONTENT_LENGTH, size)
            .header(CONTENT_TYPE, "application/octet-stream")
            .body(content);
        let response = send(field, &url, request).await?;
        match response.status() {
            status if status.is_success() => Ok(status),
            status => Err(unwilling(field, &url, status)),
        }
    }
}

/// Sends a request. The resolver learns the port by the way.
async fn send(field: &'static str, url: &Url, request: RequestBuilder) -> ServiceResult<Response> {
    let port = url.port_or_known_default().unwrap_or_default();
    let sent = PORT.scope(port, request.send()).await;
    sent.map_err(|error| refused(field, url, error))
}

fn failed(source: Box<dyn Error + Send + Sync>) -> ServiceError {
    ServiceError::new(ErrorKind::Internal, "no URL can be fetched here").source(source)
}

/// Where a redirect leads.
fn next_url(url: &Url, response: &Response) -> Option<Url> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    is_redirect.then(|| url.join(location).ok()).flatten()
}

/// The host does not give or take the file.
fn unwilling(field: &'static str, url: &Url, status: StatusCode) -> ServiceError {
    let text = format!("{} answered {status}", printable(url));
    ServiceError::new(ErrorKind::BadRequest, text).field(field)
}

/// The host was not reached, or the resolver refused it.
fn refused(field: &'static str, url: &Url, error: reqwest::Error) -> ServiceError {
    if chain(&error).any(|cause| cause.is::<ClosedName>()) {
        return target::closed(field, url.host_str().unwrap_or_default());
    }
    let (kind, what) = if error.is_timeout() {
        (ErrorKind::TimedOut, "took too long")
    } else {
        (ErrorKind::BadRequest, "could not be reached")
    };
    // A presigned URL is a secret, so the error goes on without it.
    ServiceError::new(kind, format!("{} {what}", printable(url)))
        .field(field)
        .source(error.without_url())
}

/// A URL without what may be secret in it.
fn printable(url: &Url) -> String {
    format!("`{}`", url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A site on loopback that redirects everybody, and counts its connections.
    async fn site(location: impl Fn(u16) -> String) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(AtomicUsize::new(0));
        let (count, location) = (seen.clone(), location(port));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]).await;
                let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n");
                let rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all((head + rest).as_bytes()).await;
            }
        });
        (port, seen)
    }

    /// A resolver that gives one answer after the other, and the last one again and again.
    fn answers(turns: &[&str]) -> LookUp {
        let mut turns: Vec<IpAddr> = turns
            .iter()
            .rev()
            .map(|text| text.parse().unwrap())
            .collect();
        let next = move || match turns.len() {
            1 => turns[0],
            _ => turns.pop().unwrap(),
        };
        let next = Mutex::new(next);
        Arc::new(move |_| {
            let address = (next.lock().unwrap())();
            Box::pin(async move { Ok(vec![address]) })
        })
    }

    const HOST_ADDRESS: &str = "45.66.77.1";

    fn host_addresses() -> Vec<IpAddr> {
        vec![HOST_ADDRESS.parse().unwrap()]
    }

    fn client(hosts: &[String], denied: &[&str], look_up: LookUp) -> UrlClient {
        let denied: Vec<_> = denied.iter().map(|text| text.parse().unwrap()).collect();
        UrlClient::with(Reach::new(hosts, &denied, host_addresses), look_up).unwrap()
    }

    async fn refusal(client: &UrlClient, url: &str) -> String {
        let error = client.get("url", url).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{url}: {error}");
        error.to_string()
    }

    #[tokio::test]
    async fn this_host_is_not_asked_by_whatever_address_or_name() {
        let client = client(&[], &[], answers(&[HOST_ADDRESS]));
        for url in [
            "http://45.66.77.1:8599/",
            "http://[2002:2d42:4d01::]:8599/",
            "http://somewhere.test:8599/",
        ] {
            let message = refusal(&client, url).await;
            assert!(message.contains("is not a public address"), "{message}");
        }
    }

    #[tokio::test]
    async fn what_the_operator_denies_is_not_asked() {
        let denied = ["evil.test", "45.66.77.0/24:8080"];
        let client = client(&[], &denied, answers(&["45.66.77.2"]));
        for url in [
            "http://evil.test/",
            "http://45.66.77.2:8080/",
            "http://other.test:8080/",
        ] {
            refusal(&client, url).await;
        }
        // Another port is another matter.
        let reach = &client.reach;
        assert!(reach.has_addresses(None, ["45.66.77.2".parse().unwrap()], 8081));
    }

    #[tokio::test]
    async fn a_name_is_judged_each_time_it_is_used() {
        let (port, seen) = site(|port| format!("http://turns.test:{port}/")).await;
        let hosts = [format!("127.0.0.1:{port}")];
        let reach = Arc::new(Reach::new(&hosts, &[], host_addresses));
        for turn in ["127.0.0.1", HOST_ADDRESS] {
            let resolver = CheckedResolver::new(answers(&["45.66.77.2", turn]), reach.clone());
            let look_up = || PORT.scope(port, resolver.look_up("turns.test"));
            assert_eq!(look_up().await.unwrap().len(), 1);
            assert!(look_up().await.unwrap_err().is::<ClosedName>());
        }
        // The redirect leads by name to where the first request was allowed to go by address.
        let before = seen.load(Ordering::SeqCst);
        let client = client(&hosts, &[], answers(&["127.0.0.1"]));
        refusal(&client, &format!("http://127.0.0.1:{port}/")).await;
        assert_eq!(seen.load(Ordering::SeqCst), before + 1);
    }
}
