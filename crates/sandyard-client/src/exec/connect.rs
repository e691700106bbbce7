//! Opens WebSockets with the client's own name resolution and trusted certificates, and parses error responses like
//! those of other requests.

use std::time::Duration;
use std::{io, sync::Arc};

use reqwest::header::AUTHORIZATION;
use reqwest::{StatusCode, Url};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, protocol::WebSocketConfig};
use tokio_util::either::Either;

use super::{Socket, connection_error};
use crate::Result;
use crate::client::Client;
use crate::error::{ApiError, ClientError};
use crate::resolve::Resolver;

/// Maximum time to open a WebSocket, including waking a paused sandbox.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Largest accepted message. The server sends output in much smaller ones.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A plain or a TLS connection.
pub(super) type Connection = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Opens a WebSocket to an `http` or `https` address.
pub(super) async fn connect(client: &Client, url: Url) -> Result<Socket> {
    tokio::time::timeout(CONNECT_TIMEOUT, open(client, url))
        .await
        .unwrap_or_else(|_| {
            let error = io::Error::from(io::ErrorKind::TimedOut);
            Err(unreachable(client, error))
        })
}

async fn open(client: &Client, mut url: Url) -> Result<Socket> {
    let connection = dial(client, &url)
        .await
        .map_err(|error| unreachable(client, error))?;
    let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
    url.set_scheme(scheme)
        .expect("http and https may become ws and wss");
    let mut request = url
        .as_str()
        .into_client_request()
        .map_err(connection_error)?;
    if let Some(authorization) = client.authorization() {
        request
            .headers_mut()
            .insert(AUTHORIZATION, authorization.clone());
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    match tokio_tungstenite::client_async_with_config(request, connection, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => {
            let status = StatusCode::from_u16(response.status().as_u16())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let body = response.body().as_deref().unwrap_or_default();
            let error = ApiError::from_body(status, None, body);
            Err(ClientError::Api(Box::new(error)))
        }
        Err(error) => Err(connection_error(error)),
    }
}

async fn dial(client: &Client, url: &Url) -> io::Result<Connection> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let host = url.host_str().ok_or_else(invalid)?;
    let port = url.port_or_known_default().ok_or_else(invalid)?;
    let stream = dial_any(Resolver.lookup(host, port).await?).await?;
    stream.set_nodelay(true)?;
    if url.scheme() != "https" {
        return Ok(Either::Left(stream));
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
    // A WebSocket starts with HTTP/1.1, which is the only version that reqwest is built with.
    let connector = TlsConnector::from(Arc::clone(&client.tls()));
    Ok(Either::Right(Box::new(
        connector.connect(name, stream).await?,
    )))
}

async fn dial_any(addresses: Vec<std::net::SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn unreachable(client: &Client, error: io::Error) -> ClientError {
    ClientError::not_connected(client.url(), Box::new(error))
}
