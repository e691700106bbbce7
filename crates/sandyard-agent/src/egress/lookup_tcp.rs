//! DNS queries over TCP: each message after two bytes of length, several on one connection.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Egress;
use super::dns_message::{Code, Flaw, MAX_QUERY_BYTES, Question, failure};
use super::listener::{Listener, reset, stream};
use super::lookup::answer;

/// How long a program may take to send its next query, or to receive an answer.
const IDLE: Duration = Duration::from_secs(10);

/// Serves one listener forever.
pub(super) async fn serve(egress: Rc<Egress>, listener: Listener) {
    loop {
        accept(&egress, listener.next().await);
    }
}

/// Answers queries on a connection, if there are not too many such connections.
pub(super) fn accept(egress: &Rc<Egress>, connection: OwnedFd) {
    let Some(slot) = egress.lookups.try_take() else {
        return reset(connection);
    };
    let egress = egress.clone();
    tokio::task::spawn_local(async move {
        if let Ok(mut stream) = stream(connection) {
            let _ = converse(&egress, &mut stream).await;
        }
        drop(slot);
    });
}

/// Answers one query after the other; returns when the program ends the connection or sends something else.
async fn converse(egress: &Egress, stream: &mut TcpStream) -> Option<()> {
    loop {
        let query = timeout(IDLE, read(stream)).await.ok()??;
        let answer = respond(egress, &query).await?;
        let mut framed = Vec::with_capacity(answer.len() + 2);
        framed.extend(u16::try_from(answer.len()).ok()?.to_be_bytes());
        framed.extend(answer);
        timeout(IDLE, stream.write_all(&framed)).await.ok()?.ok()?;
    }
}

async fn read(stream: &mut TcpStream) -> Option<Bytes> {
    let length = usize::from(stream.read_u16().await.ok()?);
    if length > MAX_QUERY_BYTES {
        return None;
    }
    let mut query = vec![0; length];
    stream.read_exact(&mut query).await.ok()?;
    Some(query.into())
}

async fn respond(egress: &Egress, query: &Bytes) -> Option<Vec<u8>> {
    let question = match Question::of(query) {
        Ok(question) => question,
        Err(Flaw::NotAQuery) => return None,
        Err(Flaw::Refused(code)) => return Some(failure(query, None, code)),
    };
    match egress.queries.take(&egress.channels).await {
        Some(_place) => Some(answer(egress, query, &question).await),
        None => Some(failure(query, Some(&question), Code::Failure)),
    }
}
