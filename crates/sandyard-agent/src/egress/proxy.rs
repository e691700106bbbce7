//! A proxy for programs that are told of one, where connections cannot be redirected.
//!
//! It reads what a program wants and hands the connection over with that; the gateway answers the program. Only what cannot be
//! understood is answered here.

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sandyard_wire::egress::{FromAgent, Via};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Egress;
use super::accept::{self, Door, reset};
use super::names::Names;
use super::{http_proxy, socks};

/// How long a program may take to say what it wants.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a refused program may take to read why.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// Most bytes read after a refusal only to be rid of them: unread ones would cut the answer off.
const MAX_DISCARDED_BYTES: u64 = 1024 * 1024;

/// What a program wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// As the gateway is told: a name, or an address that stands for none.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) via: Via,
    /// What it has sent already, for the other side.
    pub(super) early: Bytes,
}

/// An answer that ends the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) Vec<u8>);

/// Serves the door for ever.
pub(super) async fn serve(egress: Rc<Egress>, door: Door) {
    loop {
        let connection = door.next().await;
        let Some(place) = egress.proxied.enter(&egress.channels).await else {
            reset(connection);
            continue;
        };
        let egress = egress.clone();
        tokio::task::spawn_local(async move {
            take(&egress, connection).await;
            drop(place);
        });
    }
}

async fn take(egress: &Egress, connection: OwnedFd) {
    let Ok(mut stream) = accept::stream(connection) else {
        return;
    };
    let wish = match timeout(HEAD_TIME, listen(&mut stream, &egress.names)).await {
        Ok(Ok(wish)) => wish,
        Ok(Err(Some(refusal))) => return refuse(stream, refusal).await,
        // It left, or said nothing in all that time.
        Ok(Err(None)) | Err(_) => return,
    };
    let Ok(connection) = stream.into_std() else {
        return;
    };
    let (connection, via) = (OwnedFd::from(connection), wish.via);
    let message = FromAgent::Open {
        host: wish.host,
        port: wish.port,
        via,
        early: wish.early,
    };
    let sent = egress
        .channels
        .send(&message, Some(connection.as_fd()))
        .await;
    if sent.is_err()
        && let Ok(stream) = accept::stream(connection)
    {
        refuse(stream, no_gateway(via)).await;
    }
}

/// Reads what the program wants; the first byte tells the two protocols apart.
async fn listen(stream: &mut TcpStream, names: &RefCell<Names>) -> Result<Wish, Option<Refusal>> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1..) if first[0] == socks::VERSION => socks::listen(stream, names).await,
        Ok(1..) => http_proxy::listen(stream, names).await,
        _ => Err(None),
    }
}

fn no_gateway(via: Via) -> Refusal {
    match via {
        Via::Socks => socks::refusal(socks::GENERAL_FAILURE),
        Via::Connect | Via::Http | Via::Redirect => http_proxy::refusal(
            "503 Service Unavailable",
            "the sandbox's gateway is not there; try again in a moment",
        ),
    }
}

/// Says why, and waits a little until the program has read it.
async fn refuse(mut stream: TcpStream, refusal: Refusal) {
    let say = async {
        stream.write_all(&refusal.0).await?;
        stream.shutdown().await?;
        let mut rest = stream.take(MAX_DISCARDED_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    let _ = timeout(REFUSAL_TIME, say).await;
}

/// Reads exactly so many bytes; none when the program leaves before.
pub(super) async fn read<const COUNT: usize>(stream: &mut TcpStream) -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes).await.ok()?;
    Some(bytes)
}
