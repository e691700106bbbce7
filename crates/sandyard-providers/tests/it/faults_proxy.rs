//! The server behind a proxy that injects faults: reached by a port or a socket, with connections that become streams.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::faults::Fault;

/// Most bytes of a stream that are carried at once, where that is slow.
const PIECE: usize = 256;

/// Address of the server.
#[derive(Clone)]
pub(crate) enum Server {
    Port(SocketAddr),
    Socket(PathBuf),
}

/// What it answers: all of it, or that the connection is a stream from now on.
pub(crate) enum Answer {
    Entire(Parts, Bytes),
    Stream(Parts, Ends),
}

/// Both ends of a stream, the server's last.
pub(crate) type Ends = (OnUpgrade, OnUpgrade);

impl Server {
    /// Asks it; the answer keeps its length.
    pub(crate) async fn ask(&self, request: Request<Incoming>) -> io::Result<Answer> {
        match self {
            Self::Port(address) => {
                let stream = TcpStream::connect(address).await?;
                ask(stream, &address.to_string(), request).await
            }
            Self::Socket(path) => ask(UnixStream::connect(path).await?, "docker", request).await,
        }
    }
}

async fn ask<S>(stream: S, host: &str, mut request: Request<Incoming>) -> io::Result<Answer>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let foreign = hyper::upgrade::on(&mut request);
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(io::Error::other)?;
    // The reader of the answer sees the error of a broken connection.
    tokio::spawn(async move { connection.with_upgrades().await.ok() });
    let (mut head, body) = request.into_parts();
    let host = HeaderValue::try_from(host).map_err(io::Error::other)?;
    head.headers.insert(header::HOST, host);
    head.headers.remove(header::TRANSFER_ENCODING);
    let path = head.uri.path_and_query().cloned();
    head.uri = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    head.extensions.clear();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let call = sender.send_request(Request::from_parts(head, Full::new(body)));
    let mut response: Response<Incoming> = call.await.map_err(io::Error::other)?;
    let own = hyper::upgrade::on(&mut response);
    let (mut head, body) = response.into_parts();
    head.extensions.clear();
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Answer::Stream(head, (foreign, own)));
    }
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    head.headers.remove(header::TRANSFER_ENCODING);
    if head.status != StatusCode::NO_CONTENT {
        head.headers
            .insert(header::CONTENT_LENGTH, body.len().into());
    }
    Ok(Answer::Entire(head, body))
}

/// Carries a stream as the fault says: as it comes, piece by piece, or not beyond the first piece.
pub(crate) async fn spoil_stream((foreign, own): Ends, fault: Fault) -> Option<()> {
    let stream = |end: Upgraded| TokioIo::new(end);
    let (mut foreign, mut own) = (stream(foreign.await.ok()?), stream(own.await.ok()?));
    match fault {
        Fault::Slow(pause) => {
            let (mut up, mut down) = (tokio::io::split(foreign), tokio::io::split(own));
            tokio::join!(
                piece_by_piece(&mut up.0, &mut down.1, pause),
                piece_by_piece(&mut down.0, &mut up.1, pause),
            );
        }
        Fault::Lose => {}
        Fault::Half => {
            let mut piece = [0; PIECE];
            let count = foreign.read(&mut piece).await.ok()?;
            own.write_all(&piece[..count / 2]).await.ok()?;
        }
        _ => drop(tokio::io::copy_bidirectional(&mut foreign, &mut own).await),
    }
    Some(())
}

async fn piece_by_piece(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    pause: Duration,
) {
    let mut piece = [0; PIECE];
    while let Ok(count) = from.read(&mut piece).await {
        tokio::time::sleep(pause).await;
        if count == 0 || to.write_all(&piece[..count]).await.is_err() {
            break;
        }
    }
    // The other direction may go on.
    let _ = to.shutdown().await;
}
