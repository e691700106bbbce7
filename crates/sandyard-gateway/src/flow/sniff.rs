//! What a program says first, as far as it names a host.
//!
//! The name that was looked up decides where a connection goes. What is said on it must not be for another: a server that
//! stands for many names (a content network, a shared host) would else be a door to all of them.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use rustls::server::Acceptor;
use sandyard_core::network::pattern::canonical_name;

use super::inside::Inside;

/// Most bytes that are read to find a name.
const MOST: usize = 48 * 1024;

/// Longest first line of a request.
const LONGEST_LINE: usize = 16 * 1024;

/// Longest word that may be a method.
const LONGEST_METHOD: usize = 64;

/// Letters kept of a name that is none.
const LONGEST_SHOWN: usize = 300;

/// Words that begin a request of HTTP 0.9, or one that some server makes out though it is broken.
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

/// How long a program may take from its first byte until its hello or head is whole.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a program is waited for that may itself be waiting.
const MOMENT: Duration = Duration::from_millis(300);

/// How long a program may be silent in the middle of what may be the first line of a request, where no name is denied. Some
/// protocols have no lines.
const HALF_A_LINE: Duration = Duration::from_secs(1);

/// What the program said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A TLS hello, with the name in it if there is one.
    Tls(Option<String>),
    /// An HTTP request, with its `Host` if there is one.
    Http(Option<String>),
    /// It began like one of the two and does not make sense.
    Unreadable,
    /// Something else.
    Other,
    /// Nothing: it closed its side.
    Nothing,
}

/// Reads until it is clear what is said. What was read comes back with it. `is_open`: no name is denied, so that nothing is
/// gained by waiting for one for long.
pub(crate) async fn sniff(
    inside: &Inside,
    early: Bytes,
    is_open: bool,
) -> io::Result<(Said, Bytes)> {
    let mut seen = early.to_vec();
    if seen.is_empty() {
        let (piece, count) = inside.receive_into(|| vec![0; 16 * 1024]).await?;
        if count == 0 {
            return Ok((Said::Nothing, Bytes::new()));
        }
        seen.extend_from_slice(&piece[..count]);
    }
    let more = async {
        loop {
            if let Some(said) = understand(&seen, is_open) {
                return io::Result::Ok(said);
            }
            if seen.len() >= MOST {
                return Ok(Said::Unreadable);
            }
            let received = inside.receive_into(|| vec![0; 16 * 1024]);
            let (piece, count) = if is_open && is_half_a_line(&seen) {
                match tokio::time::timeout(HALF_A_LINE, received).await {
                    Ok(received) => received?,
                    Err(_) => return Ok(Said::Other),
                }
            } else {
                received.await?
            };
            if count == 0 {
                // It is what it is; nothing more will come.
                return Ok(Said::Unreadable);
            }
            seen.extend_from_slice(&piece[..count]);
        }
    };
    let said = match tokio::time::timeout(PATIENCE, more).await {
        Ok(said) => said?,
        Err(_) => Said::Unreadable,
    };
    Ok((said, seen.into()))
}

/// The same for a program that may be waiting for the other side to speak first: gives up after a moment, with nothing read.
pub(crate) async fn sniff_soon(
    inside: &Inside,
    early: Bytes,
    is_open: bool,
) -> io::Result<(Option<Said>, Bytes)> {
    if early.is_empty()
        && tokio::time::timeout(MOMENT, inside.readable())
            .await
            .is_err()
    {
        return Ok((None, early));
    }
    let (said, first) = sniff(inside, early, is_open).await?;
    Ok((Some(said), first))
}

/// Says what it is, or that more has to be read. Where names matter, whatever a lenient server may take for a request is one.
fn understand(seen: &[u8], is_open: bool) -> Option<Said> {
    match *seen.first()? {
        0x16 => return tls(seen),
        // Records of TLS other than a handshake. Some servers pass over them and read the hello that follows.
        0x14 | 0x15 | 0x17 => return Some(Said::Unreadable),
        _ => {}
    }
    // Servers pass over empty lines before a request, some over spaces.
    let start = seen.iter().position(|byte| !is_space(*byte))?;
    http(&seen[start..], is_open)
}

/// Says whether it is text without the end of its first line, such as clients send whole.
fn is_half_a_line(seen: &[u8]) -> bool {
    seen.first().is_some_and(|first| is_token(*first)) && !seen.contains(&b'\n')
}

/// Reads a hello; none when more has to be read.
pub(super) fn tls(seen: &[u8]) -> Option<Said> {
    // Some servers take any version of the first record.
    if seen.len() > 1 && seen[1] != 3 {
        return Some(Said::Unreadable);
    }
    let mut acceptor = Acceptor::default();
    let mut rest = seen;
    while !rest.is_empty() {
        match acceptor.read_tls(&mut rest) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => return Some(Said::Unreadable),
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                return Some(Said::Tls(hello.server_name().map(plain_name)));
            }
            Ok(None) => {}
            Err(_) => return Some(Said::Unreadable),
        }
    }
    None
}

fn http(seen: &[u8], is_open: bool) -> Option<Said> {
    let word = seen.iter().position(|byte| is_space(*byte));
    let method = &seen[..word.unwrap_or(seen.len())];
    if method.is_empty()
        || method.len() > LONGEST_METHOD
        || !method.iter().all(|byte| is_token(*byte))
    {
        return Some(Said::Other);
    }
    let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
        return (seen.len() >= LONGEST_LINE).then_some(Said::Unreadable);
    };
    let mut words = seen[..end].split(|byte| is_space(*byte));
    let has_version = words.any(|word| {
        word.get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"))
    });
    // Other protocols have such words, too (`get` of memcached), and wait for an answer after one line.
    let is_request = has_version || (!is_open && is_method(method));
    if !is_request {
        return Some(Said::Other);
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
        [] => Some(Said::Http(None)),
        [host] => Some(Said::Http(Some(without_port(host)))),
        // Which one counts is the other side's guess.
        _ => Some(Said::Unreadable),
    }
}

/// A `Host` without its port, in the form names are compared in.
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

/// In the form names are compared in. What is no name is kept for the record, in a form that harms no reader of it.
fn plain_name(name: &str) -> String {
    canonical_name(name).unwrap_or_else(|| {
        let harmless = name.chars().filter(|letter| !letter.is_control());
        harmless
            .take(LONGEST_SHOWN)
            .collect::<String>()
            .to_lowercase()
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

    fn host(text: &str) -> Said {
        Said::Http(Some(text.to_owned()))
    }

    #[test]
    fn a_requests_host_is_found() {
        let request = b"GET / HTTP/1.1\r\nAccept: */*\r\nHOST:  Example.COM:8080 \r\n\r\n";
        assert_eq!(understand(request, false), Some(host("example.com")));
        for cut in 1..request.len() {
            assert_eq!(understand(&request[..cut], false), None, "{cut}");
        }
        let bare = b"GET / HTTP/1.1\nHost: example.com.\n\n";
        assert_eq!(understand(bare, false), Some(host("example.com")));
    }

    #[test]
    fn ways_around_are_seen() {
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
            assert_eq!(understand(request, false), Some(host("a.test")));
        }
        let long = [&b"GET /"[..], &[b'a'; LONGEST_LINE]].concat();
        assert_eq!(understand(&long, false), Some(Said::Unreadable));
        for records in [
            &b"\x15\x03\x01\x00\x02\x01\x70\x16\x03\x01"[..],
            b"\x14\x03\x03\x00\x01\x01\x16\x03\x01",
            b"\x17\x03\x03\x00\x00\x16\x03\x01",
            b"\x16\x02\x01\x00\xc8\x01\x00\x00\xc4",
        ] {
            assert_eq!(understand(records, false), Some(Said::Unreadable));
        }
        let two = b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n";
        assert_eq!(understand(two, false), Some(Said::Unreadable));
        assert_eq!(
            understand(b"GET / HTTP/1.0\r\n\r\n", false),
            Some(Said::Http(None))
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
            assert_eq!(understand(first, true), Some(Said::Other), "{first:?}");
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
        let said = Some(Said::Tls(Some("example.com".to_owned())));
        assert_eq!(understand(&hello, false), said);
        for cut in 1..hello.len() {
            assert_eq!(understand(&hello[..cut], false), None, "{cut}");
        }
        // One record cut into many.
        let mut pieces = Vec::new();
        for piece in hello[5..].chunks(7) {
            pieces.extend_from_slice(&[0x16, 3, 1, 0, piece.len() as u8]);
            pieces.extend_from_slice(piece);
        }
        assert_eq!(understand(&pieces, false), said);
        assert_eq!(
            understand(b"\x16\x03\x01\x00\x05nonse", false),
            Some(Said::Unreadable)
        );
    }
}
