//! Requests to an HTTP proxy: `CONNECT host:port`, or a whole URL in place of a path.

use std::borrow::Cow;
use std::cell::RefCell;

use bytes::{BufMut as _, Bytes};
use httparse::{Header, Status};
use sandyard_wire::egress::{MAX_EARLY_BYTES, Via};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::name_addresses::NameAddresses;
use super::proxy::{ProxyRequest, Refusal};
use super::target::{Host, parse_authority};

/// Maximum length of a head in bytes. A rewritten one may be longer: each line then has a blank and a proper end.
const MAX_HEAD_BYTES: usize = MAX_EARLY_BYTES - 512;

/// Bytes per read.
const READ_BYTES: usize = 1024;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 128;

/// The default port of a URL.
const HTTP_PORT: u16 = 80;

/// Headers that concern the connection to a proxy, or that are replaced.
const DROPPED: [&str; 7] = [
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "upgrade",
];

/// Reads a program's request, with the bytes that follow it.
pub(super) async fn read_request(
    stream: &mut TcpStream,
    names: &RefCell<NameAddresses>,
) -> Result<ProxyRequest, Option<Refusal>> {
    let mut received = Vec::new();
    loop {
        let seen = received.len();
        let space = MAX_HEAD_BYTES - seen;
        if space == 0 {
            return Err(Some(refusal(
                "431 Request Header Fields Too Large",
                "the head of the request is longer than 31 KiB",
            )));
        }
        received.reserve(READ_BYTES.min(space));
        let read = stream.read_buf(&mut (&mut received).limit(space)).await;
        if !matches!(read, Ok(1..)) {
            return Err(None);
        }
        if may_be_whole(&received, seen)
            && let Some(request) = parse_request(&received, &mut names.borrow_mut())?
        {
            return Ok(request);
        }
    }
}

/// Whether an empty line came with the bytes after the first `seen`; nothing is parsed before.
fn may_be_whole(received: &[u8], seen: usize) -> bool {
    let fresh = received.get(seen.saturating_sub(3)..).unwrap_or_default();
    let has = |end: &[u8]| fresh.windows(end.len()).any(|window| window == end);
    has(b"\n\r\n") || has(b"\n\n")
}

/// Parses a request; `None` while its head is incomplete.
fn parse_request(
    received: &[u8],
    names: &mut NameAddresses,
) -> Result<Option<ProxyRequest>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(received) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(_) => {
            return Err(bad_request(
                "this is not a valid request to an HTTP or SOCKS 5 proxy",
            ));
        }
    };
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Ok(None);
    };
    let after = received.get(length..).unwrap_or_default();
    if method == "CONNECT" {
        let (host, port) = parse_authority(target, None).ok_or_else(|| {
            bad_request("CONNECT needs a host and a port, such as example.com:443")
        })?;
        return Ok(Some(ProxyRequest {
            host: for_gateway(host, names)?,
            port,
            via: Via::Connect,
            early: Bytes::copy_from_slice(after),
        }));
    }
    let (authority, path) = split_url(method, target)?;
    let (host, port) = parse_authority(authority, Some(HTTP_PORT))
        .ok_or_else(|| bad_request("the URL's host or port is not valid"))?;
    let host = for_gateway(host, names)?;
    let mut early = Vec::with_capacity(received.len() + 64);
    let minor = request.version.unwrap_or(1);
    write_line(
        &mut early,
        &[
            method,
            " ",
            &path,
            " HTTP/1.",
            if minor == 0 { "0" } else { "1" },
        ],
    );
    write_line(&mut early, &["Host: ", &host_header(&host, port)]);
    write_headers(&mut early, request.headers);
    early.extend_from_slice(after);
    Ok(Some(ProxyRequest {
        host,
        port,
        via: Via::Http,
        early: early.into(),
    }))
}

/// Splits a URL into its host with the port, and the path that the host is asked for.
fn split_url<'a>(method: &str, target: &'a str) -> Result<(&'a str, Cow<'a, str>), Refusal> {
    let scheme = "http://";
    let rest = match target.get(..scheme.len()) {
        Some(start) if start.eq_ignore_ascii_case(scheme) => target.get(scheme.len()..),
        _ => None,
    };
    let rest = rest.ok_or_else(|| {
        bad_request("this is a proxy: send a whole http:// URL, or use CONNECT for other protocols")
    })?;
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = match path.bytes().next() {
        Some(b'/') => Cow::Borrowed(path),
        Some(_) => Cow::Owned(format!("/{path}")),
        None if method == "OPTIONS" => Cow::Borrowed("*"),
        None => Cow::Borrowed("/"),
    };
    Ok((authority, path))
}

/// The value of the `Host` header.
fn host_header(host: &str, port: u16) -> String {
    match (host.contains(':'), port) {
        (false, HTTP_PORT) => host.to_owned(),
        (false, port) => format!("{host}:{port}"),
        (true, HTTP_PORT) => format!("[{host}]"),
        (true, port) => format!("[{host}]:{port}"),
    }
}

/// Writes the headers that concern the host. The connection ends after the answer: the next request may be for another host.
fn write_headers(head: &mut Vec<u8>, headers: &[Header<'_>]) {
    for header in headers {
        let is_dropped = DROPPED
            .iter()
            .any(|name| header.name.eq_ignore_ascii_case(name));
        if !is_dropped {
            head.extend_from_slice(header.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(header.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
}

fn write_line(head: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        head.extend_from_slice(part.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
}

/// The host for the gateway and for the `Host` header.
fn for_gateway(host: Host, names: &mut NameAddresses) -> Result<String, Refusal> {
    host.for_gateway(names).ok_or_else(|| {
        refusal(
            "502 Bad Gateway",
            "this address no longer stands for a name: look the name up again, or use the name",
        )
    })
}

fn bad_request(reason: &str) -> Refusal {
    refusal("400 Bad Request", reason)
}

/// An answer that ends the connection.
pub(super) fn refusal(status: &str, reason: &str) -> Refusal {
    let length = reason.len() + 1;
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{reason}\n"
    );
    Refusal(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(request: &str) -> (String, u16, Via, String) {
        let request = parse_request(request.as_bytes(), &mut NameAddresses::default())
            .unwrap()
            .unwrap();
        let early = String::from_utf8(request.early.to_vec()).unwrap();
        (request.host, request.port, request.via, early)
    }

    #[test]
    fn connect_keeps_what_follows_its_head() {
        assert_eq!(
            parsed("CONNECT Example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03"),
            ("example.com".into(), 443, Via::Connect, "\x16\x03".into())
        );
        assert_eq!(parsed("CONNECT [::1]:22 HTTP/1.0\r\n\r\n").1, 22);
    }

    #[test]
    fn a_whole_url_becomes_a_request_to_its_host() {
        let request = "POST HTTP://Example.com:8080/a?b=c#d HTTP/1.1\r\nHost: evil.example\r\nProxy-Connection: keep-alive\r\n\
             Proxy-Authorization: Basic eA==\r\nConnection: keep-alive, Upgrade\r\nUpgrade: x\r\nKeep-Alive: 5\r\nX-Mine: 1\r\n\
             Content-Length: 4\r\n\r\nbody";
        let (host, port, via, early) = parsed(request);
        assert_eq!((host.as_str(), port, via), ("example.com", 8080, Via::Http));
        assert_eq!(
            early,
            "POST /a?b=c HTTP/1.1\r\nHost: example.com:8080\r\nX-Mine: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        );
    }

    #[test]
    fn an_address_that_stands_for_a_name_becomes_the_name() {
        let mut names = NameAddresses::default();
        let address = names.address_of("example.com");
        let request = format!("GET http://{address}:81/ HTTP/1.1\r\nHost: {address}:81\r\n\r\n");
        let request = parse_request(request.as_bytes(), &mut names)
            .unwrap()
            .unwrap();
        assert_eq!(request.host, "example.com");
        assert!(
            request
                .early
                .starts_with(b"GET / HTTP/1.1\r\nHost: example.com:81\r\n")
        );
    }

    #[test]
    fn urls_without_a_path_get_one() {
        for (line, expected) in [
            ("GET http://h", "GET / HTTP/1.1\r\nHost: h\r\n"),
            ("GET http://h?q", "GET /?q HTTP/1.1\r\nHost: h\r\n"),
            ("GET http://h:80/", "GET / HTTP/1.1\r\nHost: h\r\n"),
            ("OPTIONS http://h", "OPTIONS * HTTP/1.1\r\nHost: h\r\n"),
            (
                "GET http://[2001:db8::1]:81/x",
                "GET /x HTTP/1.1\r\nHost: [2001:db8::1]:81\r\n",
            ),
        ] {
            let (_, _, _, early) = parsed(&format!("{line} HTTP/1.1\r\n\r\n"));
            assert_eq!(
                early,
                format!("{expected}Connection: close\r\n\r\n"),
                "{line}"
            );
        }
        assert!(
            parsed("GET http://h/ HTTP/1.0\n\n")
                .3
                .starts_with("GET / HTTP/1.0\r\n")
        );
    }

    #[test]
    fn invalid_requests_are_refused_in_one_line() {
        for request in [
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET https://h/ HTTP/1.1\r\n\r\n",
            "GET ftp://h/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://user:word@h/ HTTP/1.1\r\n\r\n",
            "GET http://h:99999/ HTTP/1.1\r\n\r\n",
            "CONNECT h HTTP/1.1\r\n\r\n",
            "CONNECT http://h:1/ HTTP/1.1\r\n\r\n",
            "CONNECT h:0 HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "GET http://h/ HTTP/1.1\r\n folded: 1\r\n\r\n",
            "GET http://h/ HTTP/1.1\r\nbad name: 1\r\n\r\n",
            "\x04\x01\n\n",
        ] {
            let Refusal(answer) =
                parse_request(request.as_bytes(), &mut NameAddresses::default()).unwrap_err();
            let answer = String::from_utf8(answer).unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
                "{request}"
            );
            let (head, text) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())));
            assert_eq!(text.lines().count(), 1);
        }
    }

    #[test]
    fn a_head_that_is_not_all_there_is_waited_for() {
        let request = b"CONNECT h:1 HTTP/1.1\r\nA: b\r\n\r\n";
        for length in 0..request.len() {
            assert_eq!(
                parse_request(&request[..length], &mut NameAddresses::default()),
                Ok(None),
                "{length}"
            );
            assert!(!may_be_whole(&request[..length], 0), "{length}");
        }
        for seen in 0..request.len() {
            assert!(may_be_whole(request, seen), "{seen}");
        }
    }

    #[test]
    fn a_rewritten_head_still_fits() {
        let name = format!("{}h", "a.".repeat(126));
        let start = format!("GET http://{name}:65535 HTTP/1.1\r\nA: ");
        let filler = "x".repeat(MAX_HEAD_BYTES - start.len() - 4);
        let request = format!("{start}{filler}\r\n\r\n");
        assert_eq!(request.len(), MAX_HEAD_BYTES);
        assert!(parsed(&request).3.len() <= MAX_EARLY_BYTES);
        // Each header gains a blank after its colon.
        let many: String = "a:\n".repeat(MAX_HEADERS);
        let filler = "x".repeat(MAX_HEAD_BYTES - start.len() - many.len() - 2 + 3 - 4);
        let request = format!("{start}{filler}\n{}\n", &many[3..]);
        assert!(
            parsed(&request).3.len() <= MAX_EARLY_BYTES,
            "{}",
            parsed(&request).3.len()
        );
    }
}
