//! The way to the other side, in either version.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use tokio::sync::Mutex;

use super::expect::OutgoingBody;

/// Sends requests over one connection.
#[derive(Debug)]
pub(super) enum Upstream {
    /// One after the other.
    One(Mutex<http1::SendRequest<OutgoingBody>>),
    /// Many at once.
    Two(http2::SendRequest<OutgoingBody>),
}

impl Upstream {
    /// Sends a request as soon as the connection takes it, and gives the head of the response.
    pub(super) async fn send(
        &self,
        request: Request<OutgoingBody>,
    ) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::One(sender) => {
                let answered = {
                    let mut sender = sender.lock().await;
                    sender.ready().await?;
                    sender.send_request(request)
                };
                answered.await
            }
            Self::Two(sender) => {
                let mut sender = sender.clone();
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}
