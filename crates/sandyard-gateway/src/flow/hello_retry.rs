//! A TLS server may ask for a second hello (HelloRetryRequest, RFC 8446, 4.1.4), and some take the server name from that one. Where
//! names matter, its name is checked against the judged name, like that of the first.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::WriteHalf;
use tokio::sync::watch;

use super::Stop;
use super::greeting::{self, Greeting};
use super::program_socket::ProgramSocket;
use super::splice::SpliceError;

/// The random of a ServerHello that is a HelloRetryRequest: SHA-256 of that word (RFC 8446, 4.1.3).
pub(crate) const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Maximum bytes of the server that are buffered until its first message is known.
const MAX_SERVER_BYTES: usize = 16 * 1024;

/// Maximum bytes of the program that are buffered until its second hello is complete; early data may come before it.
const MAX_PROGRAM_BYTES: usize = 128 * 1024;

/// How long the server may take to answer the hello. Nothing is read from the program meanwhile, so its end would go unnoticed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// Observes the server's first message.
#[derive(Debug)]
pub(super) struct ServerHello {
    seen: Mutex<Vec<u8>>,
    is_retry: watch::Sender<Option<bool>>,
}

impl ServerHello {
    pub(super) fn new() -> Self {
        Self {
            seen: Mutex::default(),
            is_retry: watch::Sender::new(None),
        }
    }

    /// Observes bytes of the server, in order, until its first message is known.
    pub(super) fn observe(&self, bytes: &[u8]) {
        if self.is_retry.borrow().is_some() {
            return;
        }
        let mut seen = self.seen.lock();
        seen.extend_from_slice(bytes);
        let is_retry = match is_retry(&seen) {
            None if seen.len() > MAX_SERVER_BYTES => Some(false),
            verdict => verdict,
        };
        if is_retry.is_some() {
            *seen = Vec::new();
            self.is_retry.send_replace(is_retry);
        }
    }

    /// Notes that the server has ended.
    pub(super) fn end(&self) {
        if self.is_retry.borrow().is_none() {
            self.is_retry.send_replace(Some(false));
        }
    }

    /// Waits until it is known whether the server asks for a second hello.
    async fn is_retry(&self) -> Result<bool, Stop> {
        let mut state = self.is_retry.subscribe();
        let verdict = state.wait_for(Option::is_some);
        match tokio::time::timeout(ANSWER_TIMEOUT, verdict).await {
            Ok(verdict) => Ok(verdict.is_ok_and(|is_retry| *is_retry == Some(true))),
            Err(_) => Err(Stop::Failed(
                "the server did not answer the TLS hello".to_owned(),
            )),
        }
    }
}

/// Sends the program's first hello, and nothing else before the server has answered it. If the server asks for a second one, that
/// is checked, too. Returns bytes that were read and have to be sent next.
pub(super) async fn carry(
    program: &ProgramSocket,
    first: Bytes,
    remote: &mut WriteHalf<'_>,
    server: &ServerHello,
    check: impl Fn(&Greeting) -> Result<(), Stop>,
) -> Result<Bytes, SpliceError> {
    let check = |greeting: &Greeting| check(greeting).map_err(SpliceError::Stopped);
    let Some(end) = hello_end(&first) else {
        check(&Greeting::Unreadable)?;
        return Ok(first);
    };
    let hello = remote.write_all(&first[..end]).await;
    hello.map_err(SpliceError::Remote)?;
    let rest = first.slice(end..);
    if !server.is_retry().await.map_err(SpliceError::Stopped)? {
        return Ok(rest);
    }
    let mut seen = rest.to_vec();
    loop {
        let greeting = match second_hello(&seen) {
            None if seen.len() > MAX_PROGRAM_BYTES => Some(Greeting::Unreadable),
            greeting => greeting,
        };
        if let Some(greeting) = greeting {
            check(&greeting)?;
            return Ok(seen.into());
        }
        let received = program.receive_into(|| vec![0; 16 * 1024]).await;
        let (piece, count) = received.map_err(SpliceError::Program)?;
        if count == 0 {
            // The program ended without a second hello.
            return Ok(seen.into());
        }
        seen.extend_from_slice(&piece[..count]);
    }
}

/// The records that have arrived: type, and bytes with the header. The last one may be incomplete.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let head = bytes.get(..5)?;
        let end = 5 + usize::from(u16::from_be_bytes([head[3], head[4]]));
        let record = Record {
            kind: head[0],
            bytes: &bytes[..end.min(bytes.len())],
            is_whole: bytes.len() >= end,
        };
        bytes = &bytes[end.min(bytes.len())..];
        Some(record)
    })
}

struct Record<'a> {
    kind: u8,
    bytes: &'a [u8],
    is_whole: bool,
}

/// Whether the server's first message asks for a second hello; `None` when more bytes are needed.
fn is_retry(seen: &[u8]) -> Option<bool> {
    let mut message = Vec::new();
    for record in records(seen) {
        match record.kind {
            HANDSHAKE => message.extend_from_slice(&record.bytes[5..]),
            // Some servers warn that they do not know the name.
            ALERT | CHANGE_CIPHER_SPEC => {}
            _ => return Some(false),
        }
        if message.first().is_some_and(|kind| *kind != SERVER_HELLO) {
            return Some(false);
        }
        // After type, length and version.
        if let Some(random) = message.get(6..38) {
            return Some(random == RETRY_RANDOM);
        }
    }
    None
}

/// The end of the first hello's records; `None` when another message begins in the last of them.
fn hello_end(first: &[u8]) -> Option<usize> {
    let (mut message, mut end) = (Vec::new(), 0);
    for record in records(first) {
        if record.kind != HANDSHAKE || !record.is_whole {
            return None;
        }
        message.extend_from_slice(&record.bytes[5..]);
        end += record.bytes.len();
        let Some(&[kind, high, middle, low]) = message.first_chunk() else {
            continue;
        };
        let len = 4 + u32::from_be_bytes([0, high, middle, low]) as usize;
        if kind != CLIENT_HELLO || message.len() > len {
            return None;
        }
        if message.len() == len {
            return Some(end);
        }
    }
    None
}

/// What the second hello says; none when more has to be read.
fn second_hello(seen: &[u8]) -> Option<Greeting> {
    let mut hello = Vec::new();
    for record in records(seen) {
        match record.kind {
            HANDSHAKE if record.is_whole => hello.extend_from_slice(record.bytes),
            HANDSHAKE | CHANGE_CIPHER_SPEC | ALERT | APPLICATION_DATA => {}
            _ => return Some(Greeting::Unreadable),
        }
        if let Some(greeting) = greeting::tls(&hello) {
            return Some(match greeting {
                Greeting::Tls(_) => greeting,
                _ => Greeting::Unreadable,
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut record = vec![kind, 3, 3];
        record.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        record.extend_from_slice(payload);
        record
    }

    fn server_hello(random: [u8; 32]) -> Vec<u8> {
        let mut message = vec![SERVER_HELLO, 0, 0, 50, 3, 3];
        message.extend_from_slice(&random);
        message.resize(54, 0);
        message
    }

    #[test]
    fn a_retry_is_known_by_its_random_in_any_pieces() {
        let retry = server_hello(RETRY_RANDOM);
        let whole = record(HANDSHAKE, &retry);
        assert_eq!(is_retry(&whole), Some(true));
        let pieces: Vec<u8> = retry
            .chunks(7)
            .flat_map(|piece| record(HANDSHAKE, piece))
            .collect();
        assert_eq!(is_retry(&pieces), Some(true));
        let warned = [record(ALERT, &[1, 112]), whole.clone()].concat();
        assert_eq!(is_retry(&warned), Some(true));
        for cut in 0..43 {
            assert_eq!(is_retry(&whole[..cut]), None, "{cut}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_ends_the_wait() {
        let server = ServerHello::new();
        assert!(matches!(server.is_retry().await, Err(Stop::Failed(_))));
        server.end();
        assert!(matches!(server.is_retry().await, Ok(false)));
    }

    #[test]
    fn other_answers_are_no_retry() {
        for seen in [
            record(HANDSHAKE, &server_hello([7; 32])),
            record(APPLICATION_DATA, &server_hello(RETRY_RANDOM)),
            record(HANDSHAKE, &[11, 0, 0, 0]),
            b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
        ] {
            assert_eq!(is_retry(&seen), Some(false), "{seen:?}");
        }
    }

    #[test]
    fn a_hello_must_end_with_a_record() {
        let hello = [CLIENT_HELLO, 0, 0, 6, 1, 2, 3, 4, 5, 6];
        let whole = record(HANDSHAKE, &hello);
        let more = [whole.clone(), record(APPLICATION_DATA, b"early")].concat();
        assert_eq!(hello_end(&more), Some(whole.len()));
        let pieces = [
            record(HANDSHAKE, &hello[..3]),
            record(HANDSHAKE, &hello[3..]),
        ];
        assert_eq!(hello_end(&pieces.concat()), Some(20));
        let two = record(HANDSHAKE, &[hello, hello].concat());
        assert_eq!(hello_end(&two), None);
        assert_eq!(hello_end(&whole[..12]), None);
        let between = [record(HANDSHAKE, &hello[..3]), record(ALERT, b"xx")];
        assert_eq!(hello_end(&between.concat()), None);
    }
}
