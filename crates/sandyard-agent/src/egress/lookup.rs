//! Look-ups of names: taken from programs, answered by the gateway.

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
use super::accept::PAUSE;
use super::message::{
    self, Code, Flaw, HEADER_BYTES, MAX_QUERY_BYTES, Question, datagram_limit, failure,
};

/// How long a gateway may take for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// How often a look-up is asked again because the gateway that had it went away.
const MAX_ATTEMPTS: usize = 4;

/// Answers what comes to one UDP socket, for ever.
pub(super) async fn serve(egress: Rc<Egress>, socket: Rc<AsyncFd<OwnedFd>>) {
    loop {
        let (query, asker) = match socket.async_io(Interest::READABLE, receive).await {
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
            Err(Flaw::NoQuery) => continue,
            Err(Flaw::Refused(code)) => {
                reply(&socket, &failure(&query, None, code), &asker);
                continue;
            }
        };
        let Some(place) = egress.queries.enter(&egress.channels).await else {
            reply(
                &socket,
                &failure(&query, Some(&question), Code::Failure),
                &asker,
            );
            continue;
        };
        let (egress, socket) = (egress.clone(), socket.clone());
        tokio::task::spawn_local(async move {
            let mut answer = answer(&egress, &query, &question).await;
            if answer.len() > datagram_limit(&query, &question) {
                answer = message::truncated(&query, &question, &answer);
            }
            reply(&socket, &answer, &asker);
            drop(place);
        });
    }
}

/// Answers a query; for an address it is one that stands for the name from now on.
pub(super) async fn answer(egress: &Egress, query: &Bytes, question: &Question) -> Vec<u8> {
    match ask(egress, query, question).await {
        Some(answer) if answer.len() >= HEADER_BYTES => {
            let mut answer = Vec::from(answer);
            // Whatever number the gateway put there, the asker waits for its own.
            answer[..2].copy_from_slice(&query[..2]);
            answer
        }
        _ => failure(query, Some(question), Code::Failure),
    }
}

async fn ask(egress: &Egress, query: &Bytes, question: &Question) -> Option<Bytes> {
    let name = question.wanted_address();
    let address = name.map(|name| egress.names.borrow_mut().address_of(name));
    let mut open = egress.questions.open();
    let message = FromAgent::Query {
        id: open.id,
        address,
        packet: query.clone(),
    };
    for _ in 0..MAX_ATTEMPTS {
        let channel = egress.channels.send(&message, None).await.ok()?;
        tokio::select! {
            answer = timeout(ANSWER_TIME, open.answer()) => return answer.ok()?,
            () = channel.until_broken() => {}
        }
    }
    None
}

/// Takes a datagram, cut off one byte after the longest that is taken.
fn receive(socket: &OwnedFd) -> io::Result<(Bytes, SocketAddrAny)> {
    let mut buffer = [0; MAX_QUERY_BYTES + 1];
    let flags = RecvFlags::DONTWAIT;
    let (length, _, asker) = rustix::net::recvfrom(socket, &mut buffer[..], flags)?;
    let asker = asker.ok_or(io::ErrorKind::InvalidData)?;
    Ok((Bytes::copy_from_slice(&buffer[..length]), asker))
}

/// Sends an answer. One that gets lost is asked for again, as with any datagram.
fn reply(socket: &AsyncFd<OwnedFd>, answer: &[u8], asker: &SocketAddrAny) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = rustix::net::sendto(socket.get_ref(), answer, flags, asker);
}
