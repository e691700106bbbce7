//! A program's greeting: its first bytes, as far as they name a host.
//!
//! The name that was looked up decides where a connection goes. The greeting must not be for another name: otherwise a server of
//! many names (a content network, a shared host) would give access to all of them.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use rustls::server::Acceptor;
use sandyard_core::network::pattern::canonical_name;

use super::program_socket::ProgramSocket;

/// Maximum bytes that are read to find a name.
const MAX_BYTES: usize = 48 * 1024;

/// Maximum length of a request's first line.
const MAX_LINE: usize = 16 * 1024;

/// Maximum length of a method.
const MAX_METHOD: usize = 64;

/// Maximum length of an invalid name in a record, in characters.
const MAX_SHOWN: usize = 300;

/// Methods that begin a request of HTTP 0.9, or a malformed one that some servers accept.
const METHODS: [&str; 24] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "PRI",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "MERGE",
    "SEARCH",
    "LINK",
    "UNLINK",
    "PURGE",
    "QUERY",
];

/// How long a program may take from its first byte until its hello or head is complete.
const GREETING_TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait for the first byte of a program that may itself be waiting.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_millis(300);

/// How long a program may be silent in the middle of a possible first line of a request, where no name is denied. Some
/// protocols have no lines.
const LINE_TIMEOUT: Duration = Duration::from_secs(1);

/// What a program sent first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// A TLS hello, with the name in it if there is one.
    Tls(Option<String>),
    /// An HTTP request, with its `Host` if there is one.
    Http(Option<String>),
    /// It began like one of the two and is malformed.
    Unreadable,
    /// Another protocol.
    Other,
    /// Nothing: the program closed its side.
    Nothing,
}

/// Reads until the greeting is known; returns it with the bytes that were read. `is_open`: no name is denied, so that it does
/// not wait long for one.
pub(crate) async fn read_greeting(
    program: &ProgramSocket,
    early: Bytes,
    is_open: bool,
) -> io::Result<(Greeting, Bytes)> {
    let mut seen = early.to_vec();
    if seen.is_empty() {
        let (piece, count) = program.receive_into(|| vec![0; 16 * 1024]).await?;
        if count == 0 {
            return Ok((Greeting::Nothing, Bytes::new()));
        }
        seen.extend_from_slice(&piece[..count]);
    }
    let more = async {
        loop {
            if let Some(greeting) = classify(&seen, is_open) {
                return io::Result::Ok(greeting);
            }
            if seen.len() >= MAX_BYTES {
                return Ok(Greeting::Unreadable);
            }
            let received = program.receive_into(|| vec![0; 16 * 1024]);
            let (piece, count) = if is_open && is_partial_line(&seen) {
                match tokio::time::timeout(LINE_TIMEOUT, received).await {
                    Ok(received) => received?,
                    Err(_) => return Ok(Greeting::Other),
                }
            } else {
                received.await?
            };
            if count == 0 {
                // The program has ended, so the greeting stays incomplete.
                return Ok(Greeting::Unreadable);
            }
            seen.extend_from_slice(&piece[..count]);
        }
    };
    let greeting = match tokio::time::timeout(GREETING_TIMEOUT, more).await {
        Ok(greeting) => greeting?,
        Err(_) => Greeting::Unreadable,
    };
    Ok((greeting, seen.into()))
}

/// Like [`read_greeting`], for a program that may wait for the other side to send first: gives up after a moment without
/// reading.
pub(crate) async fn read_greeting_soon(
    program: &ProgramSocket,
    early: Bytes,
    is_open: bool,
) -> io::Result<(Option<Greeting>, Bytes)> {
    if early.is_empty()
        && tokio::time::timeout(FIRST_BYTE_TIMEOUT, program.readable())
            .await
            .is_err()
    {
        return Ok((None, early));
    }
    let (greeting, first) = read_greeting(program, early, is_open).await?;
    Ok((Some(greeting), first))
}

/// Classifies the first bytes; `None` when more are needed. Where names matter, everything that a lenient server might accept as
/// a request counts as one.
fn classify(seen: &[u8], is_open: bool) -> Option<Greeting> {
    match *seen.first()? {
        0x16 => return tls(seen),
        // TLS records other than a handshake. Some servers skip them and read the hello that follows.
        0x14 | 0x15 | 0x17 => return Some(Greeting::Unreadable),
        _ => {}
    }
    // Servers skip empty lines before a request, some also spaces.
    let start = seen.iter().position(|byte| !is_space(*byte))?;
    http(&seen[start..], is_open)
}

/// Whether the bytes are text without the end of the first line, which clients usually send whole.
fn is_partial_line(seen: &[u8]) -> bool {
    seen.first().is_some_and(|first| is_token(*first)) && !seen.contains(&b'\n')
}

/// Parses a TLS hello; `None` when more bytes are needed.
pub(super) fn tls(seen: &[u8]) -> Option<Greeting> {
    // Some servers accept any minor version in the first record.
    if seen.len() > 1 && seen[1] != 3 {
        return Some(Greeting::Unreadable);
    }
    let mut acceptor = Acceptor::default();
    let mut rest = seen;
    while !rest.is_empty() {
        match acceptor.read_tls(&mut rest) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => return Some(Greeting::Unreadable),
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                return Some(Greeting::Tls(hello.server_name().map(plain_name)));
            }
            Ok(None) => {}
            Err(_) => return Some(Greeting::Unreadable),
        }
    }
    None
}

fn http(seen: &[u8], is_open: bool) -> Option<Greeting> {
    let word = seen.iter().position(|byte| is_space(*byte));
    let method = &seen[..word.unwrap_or(seen.len())];
    if method.is_empty() || method.len() > MAX_METHOD || !method.iter().all(|byte| is_token(*byte))
    {
        return Some(Greeting::Other);
    }
    let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
        return (seen.len() >= MAX_LINE).then_some(Greeting::Unreadable);
    };
    let mut tokens = seen[..end].split(|byte| is_space(*byte));
    let has_version = tokens.any(|token| {
        token
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"))
    });
    // Other protocols have such tokens, too (`get` of memcached), and expect an answer after one line.
    let is_request = has_version || (!is_open && is_method(method));
    if !is_request {
        return Some(Greeting::Other);
    }
    let mut hosts = Vec::new();
    let mut rest = &seen[end + 1..];
    loop {
        let next = rest.iter().position(|byte| *byte == b'\n')?;
        let line = trim(&rest[..next]);
        rest = &rest[next + 1..];
        if line.is_empty() {
            break;
        }
        if let Some(colon) = line.iter().position(|byte| *byte == b':')
            && trim(&line[..colon]).eq_ignore_ascii_case(b"host")
        {
            hosts.push(String::from_utf8_lossy(trim(&line[colon + 1..])).into_owned());
        }
    }
    match hosts.as_slice() {
        [] => Some(Greeting::Http(None)),
        [host] => Some(Greeting::Http(Some(without_port(host)))),
        // It is undefined which one the server uses.
        _ => Some(Greeting::Unreadable),
    }
}

/// A `Host` without its port, in canonical form.
fn without_port(host: &str) -> String {
    let bare = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host
            .rsplit_once(':')
            .map_or(host, |(name, port)| match port.parse::<u16>() {
                Ok(_) => name,
                Err(_) => host,
            }),
    };
    plain_name(bare)
}

/// A name in canonical form. An invalid name is made harmless for the record.
fn plain_name(name: &str) -> String {
    canonical_name(name).unwrap_or_else(|| {
        let harmless = name.chars().filter(|letter| !letter.is_control());
        harmless.take(MAX_SHOWN).collect::<String>().to_lowercase()
    })
}

fn is_method(word: &[u8]) -> bool {
    METHODS
        .iter()
        .any(|method| word.eq_ignore_ascii_case(method.as_bytes()))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Greeting {
        Greeting::Http(Some(text.to_owned()))
    }

    #[test]
    fn a_requests_host_is_found() {
        let request = b"GET / HTTP/1.1\r\nAccept: */*\r\nHOST:  Example.COM:8080 \r\n\r\n";
        assert_eq!(classify(request, false), Some(host("example.com")));
        for cut in 1..request.len() {
            assert_eq!(classify(&request[..cut], false), None, "{cut}");
        }
        let bare = b"GET / HTTP/1.1\nHost: example.com.\n\n";
        assert_eq!(classify(bare, false), Some(host("example.com")));
    }

    #[test]
    fn evasions_are_detected() {
        for request in [
            &b"\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n"[..],
            b"get / http/1.1\r\nhost: a.test\r\n\r\n",
            b"X-ODD / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b" GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"GET\t/\tHTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"GET / HTTP/1.1 x\r\nHost: a.test\r\n\r\n",
            b"GET /\r\nHost: a.test\r\n\r\n",
            b"GET /\r\nPOST / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ] {
            assert_eq!(classify(request, false), Some(host("a.test")));
        }
        let long = [&b"GET /"[..], &[b'a'; MAX_LINE]].concat();
        assert_eq!(classify(&long, false), Some(Greeting::Unreadable));
        for records in [
            &b"\x15\x03\x01\x00\x02\x01\x70\x16\x03\x01"[..],
            b"\x14\x03\x03\x00\x01\x01\x16\x03\x01",
            b"\x17\x03\x03\x00\x00\x16\x03\x01",
            b"\x16\x02\x01\x00\xc8\x01\x00\x00\xc4",
        ] {
            assert_eq!(classify(records, false), Some(Greeting::Unreadable));
        }
        let two = b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n";
        assert_eq!(classify(two, false), Some(Greeting::Unreadable));
        assert_eq!(
            classify(b"GET / HTTP/1.0\r\n\r\n", false),
            Some(Greeting::Http(None))
        );
    }

    #[test]
    fn other_protocols_are_left_alone() {
        for first in [
            &b"SSH-2.0-OpenSSH_9.2p1\r\n"[..],
            b"EHLO me\r\n",
            b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
            b"\x03\x00\x00\x13",
            b"*1\r\n$4\r\nPING\r\n",
            b"get key\r\n",
            b"A\0\0\0\x01",
        ] {
            assert_eq!(classify(first, true), Some(Greeting::Other), "{first:?}");
        }
    }

    #[test]
    fn a_hello_may_come_in_pieces() {
        let config = rustls::ClientConfig::builder_with_provider(
            rustls::crypto::ring::default_provider().into(),
        )
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
        let name = "Example.com".to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(config.into(), name).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        let expected = Some(Greeting::Tls(Some("example.com".to_owned())));
        assert_eq!(classify(&hello, false), expected);
        for cut in 1..hello.len() {
            assert_eq!(classify(&hello[..cut], false), None, "{cut}");
        }
        // One record cut into many.
        let mut pieces = Vec::new();
        for piece in hello[5..].chunks(7) {
            pieces.extend_from_slice(&[0x16, 3, 1, 0, piece.len() as u8]);
            pieces.extend_from_slice(piece);
        }
        assert_eq!(classify(&pieces, false), expected);
        assert_eq!(
            classify(b"\x16\x03\x01\x00\x05nonse", false),
            Some(Greeting::Unreadable)
        );
    }
}
