//! The handshake with an HTTP proxy.

use std::fmt::Write as _;
use std::net::IpAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ProxyTarget;
use super::proxy::Proxy;
use super::reason::reason;

/// Maximum length of a proxy's answer up to the empty line, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Maximum length of a proxy's reason in messages, in characters.
const MAX_REASON_CHARS: usize = 80;

/// Requests a connection, and reads exactly the answer: the bytes after it are from the destination.
pub(super) async fn handshake(
    stream: &mut TcpStream,
    proxy: &Proxy,
    target: &ProxyTarget<'_>,
    port: u16,
) -> Result<(), String> {
    let request = request(proxy, target, port);
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(|err| reason(&err))?;
    let mut budget = MAX_HEAD_BYTES;
    loop {
        let head = read_head(stream, budget).await?;
        budget -= head.len();
        match status(&head).ok_or("its answer is not HTTP")? {
            // An interim answer.
            (100..200, _) => {}
            (200..300, _) => return Ok(()),
            (407, _) => {
                let problem = if proxy.credentials.is_some() {
                    "it rejects this user name and password"
                } else {
                    "it requires a user name and a password"
                };
                return Err(format!("{problem} (status 407)"));
            }
            (code, reason) => return Err(format!("it answers `{code}{reason}`")),
        }
    }
}

fn request(proxy: &Proxy, target: &ProxyTarget<'_>, port: u16) -> String {
    let authority = match target {
        ProxyTarget::Name(name) => format!("{name}:{port}"),
        ProxyTarget::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        ProxyTarget::Address(address) => format!("{address}:{port}"),
    };
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some(authorization) = proxy.authorization() {
        let _ = write!(request, "Proxy-Authorization: {authorization}\r\n");
    }
    request.push_str("\r\n");
    request
}

/// Reads up to and including the first empty line. It peeks before it reads, so that nothing after the line is consumed.
async fn read_head(stream: &mut TcpStream, max: usize) -> Result<Vec<u8>, String> {
    let mut head = Vec::new();
    let mut buffer = vec![0; 2048];
    loop {
        let seen = stream.peek(&mut buffer).await.map_err(|err| reason(&err))?;
        if seen == 0 {
            return Err("connection closed".into());
        }
        let before = head.len();
        head.extend_from_slice(&buffer[..seen]);
        let end = end_of_head(&head);
        let taken = end.unwrap_or(head.len()) - before;
        stream
            .read_exact(&mut buffer[..taken])
            .await
            .map_err(|err| reason(&err))?;
        if let Some(end) = end {
            head.truncate(end);
        }
        if head.len() > max {
            return Err("its answer is too long".into());
        }
        if end.is_some() {
            return Ok(head);
        }
    }
}

/// The end of the empty line. Bare line feeds count, because some proxies send them.
fn end_of_head(head: &[u8]) -> Option<usize> {
    let lines = head
        .windows(2)
        .position(|two| two == b"\n\n")
        .map(|at| at + 2);
    let marked = head
        .windows(3)
        .position(|three| three == b"\n\r\n")
        .map(|at| at + 3);
    match (lines, marked) {
        (Some(lines), Some(marked)) => Some(lines.min(marked)),
        (lines, marked) => lines.or(marked),
    }
}

/// The status code and the reason phrase.
fn status(head: &[u8]) -> Option<(u16, String)> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let rest = line.strip_prefix("HTTP/1.")?.get(1..)?.strip_prefix(' ')?;
    let (code, reason_phrase) = rest
        .trim_end()
        .split_once(' ')
        .unwrap_or((rest.trim_end(), ""));
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let reason_phrase: String = reason_phrase
        .chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .take(MAX_REASON_CHARS)
        .collect();
    let reason_phrase = match reason_phrase.trim() {
        "" => String::new(),
        reason_phrase => format!(" {reason_phrase}"),
    };
    Some((code.parse().ok()?, reason_phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_at_its_first_empty_line() {
        assert_eq!(end_of_head(b"HTTP/1.1 200 OK\r\n\r\nSSH-2.0\n\n"), Some(19));
        assert_eq!(end_of_head(b"HTTP/1.0 200\n\nrest\r\n\r\n"), Some(14));
        assert_eq!(end_of_head(b"HTTP/1.1 200 OK\r\nA: b\r\n"), None);
    }

    #[test]
    fn a_status_is_a_number_with_words_for_people() {
        let read = |line: &str| status(line.as_bytes());
        assert_eq!(read("HTTP/1.1 200\r\n"), Some((200, String::new())));
        assert_eq!(
            read("HTTP/1.0 403 No \x1b[31mway\r\n"),
            Some((403, " No [31mway".into()))
        );
        assert_eq!(
            read(&format!("HTTP/1.1 502 {}\r\n", "x".repeat(500)))
                .unwrap()
                .1
                .len(),
            81
        );
        for bad in [
            "HTTP/2 200\r\n",
            "SSH-2.0",
            "HTTP/1.1 2000 x",
            "HTTP/1.1  200",
            "HTTP/1.1 +20 x",
            "HTTP/1.",
            "",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
