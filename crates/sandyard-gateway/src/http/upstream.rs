//! The connection to the remote side, in either version of HTTP.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use tokio::sync::Mutex;

use super::expect::OutgoingBody;

/// Sends requests over one connection.
#[derive(Debug)]
pub(super) enum Upstream {
    /// One request after another.
    Http1(Mutex<http1::SendRequest<OutgoingBody>>),
    /// Concurrent requests.
    Http2(http2::SendRequest<OutgoingBody>),
}

impl Upstream {
    /// Sends a request when the connection is ready; returns the head of the response.
    pub(super) async fn send(
        &self,
        request: Request<OutgoingBody>,
    ) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                let answered = {
                    let mut sender = sender.lock().await;
                    sender.ready().await?;
                    sender.send_request(request)
                };
                answered.await
            }
            Self::Http2(sender) => {
                let mut sender = sender.clone();
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}
