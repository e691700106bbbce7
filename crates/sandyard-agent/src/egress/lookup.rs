//! DNS queries of programs, which the gateway answers.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny};
use sandyard_wire::egress::FromAgent;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::Egress;
use super::dns_message::{
    self, Code, Flaw, HEADER_BYTES, MAX_QUERY_BYTES, Question, datagram_limit, failure,
};
use super::listener::PAUSE;

/// How long a gateway may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Maximum number of attempts when gateways end before they answer.
const MAX_ATTEMPTS: usize = 4;

/// Answers the queries of one UDP socket forever.
pub(super) async fn serve(egress: Rc<Egress>, socket: Rc<AsyncFd<OwnedFd>>) {
    loop {
        let (query, client) = match socket.async_io(Interest::READABLE, receive).await {
            Ok(received) => received,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if query.len() > MAX_QUERY_BYTES {
            continue;
        }
        let question = match Question::of(&query) {
            Ok(question) => question,
            Err(Flaw::NotAQuery) => continue,
            Err(Flaw::Refused(code)) => {
                reply(&socket, &failure(&query, None, code), &client);
                continue;
            }
        };
        let Some(slot) = egress.queries.take(&egress.channels).await else {
            reply(
                &socket,
                &failure(&query, Some(&question), Code::Failure),
                &client,
            );
            continue;
        };
        let (egress, socket) = (egress.clone(), socket.clone());
        tokio::task::spawn_local(async move {
            let mut answer = answer(&egress, &query, &question).await;
            if answer.len() > datagram_limit(&query, &question) {
                answer = dns_message::truncated(&query, &question, &answer);
            }
            reply(&socket, &answer, &client);
            drop(slot);
        });
    }
}

/// Answers a query. The answer to an address query is an address that stands for the name.
pub(super) async fn answer(egress: &Egress, query: &Bytes, question: &Question) -> Vec<u8> {
    match ask(egress, query, question).await {
        Some(answer) if answer.len() >= HEADER_BYTES => {
            let mut answer = Vec::from(answer);
            // The program expects the id of its own query.
            answer[..2].copy_from_slice(&query[..2]);
            answer
        }
        _ => failure(query, Some(question), Code::Failure),
    }
}

async fn ask(egress: &Egress, query: &Bytes, question: &Question) -> Option<Bytes> {
    let name = question.wanted_address();
    let address = name.map(|name| egress.names.borrow_mut().address_of(name));
    let mut open = egress.pending_queries.open();
    let message = FromAgent::Query {
        id: open.id,
        address,
        packet: query.clone(),
    };
    for _ in 0..MAX_ATTEMPTS {
        let channel = egress.channels.send(&message, None).await.ok()?;
        tokio::select! {
            answer = timeout(ANSWER_TIME, open.answer()) => return answer.ok()?,
            () = channel.closed() => {}
        }
    }
    None
}

/// Receives a datagram, cut off one byte after the maximum length.
fn receive(socket: &OwnedFd) -> io::Result<(Bytes, SocketAddrAny)> {
    let mut buffer = [0; MAX_QUERY_BYTES + 1];
    let flags = RecvFlags::DONTWAIT;
    let (length, _, client) = rustix::net::recvfrom(socket, &mut buffer[..], flags)?;
    let client = client.ok_or(io::ErrorKind::InvalidData)?;
    Ok((Bytes::copy_from_slice(&buffer[..length]), client))
}

/// Sends an answer. If it is lost the program repeats the query, as with any datagram.
fn reply(socket: &AsyncFd<OwnedFd>, answer: &[u8], client: &SocketAddrAny) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = rustix::net::sendto(socket.get_ref(), answer, flags, client);
}
