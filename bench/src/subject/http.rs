//! Minimal HTTP/1.1 client over one connection, to add as little work as possible.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// Time limit of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes of a large body read at once.
const PIECE: usize = 256 << 10;

/// Persistent connection, as frequent clients use.
#[derive(Debug)]
pub(super) struct Connection {
    stream: BufReader<Stream>,
    host: String,
}

impl Connection {
    /// Connects to a Unix socket.
    pub(super) fn open_unix(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)
            .with_context(|| format!("failed to connect to `{}`", socket.display()))?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(Self::over(Stream::Unix(stream), "localhost".to_owned()))
    }

    /// Connects to an address.
    pub(super) fn open_tcp(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .with_context(|| format!("failed to connect to `{address}`"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(Self::over(Stream::Tcp(stream), address.to_string()))
    }

    /// Returns the process at the other end of a Unix socket.
    pub(super) fn other_side(&self) -> Result<u32> {
        let Stream::Unix(stream) = self.stream.get_ref() else {
            bail!("only a Unix socket knows who is at its other end");
        };
        let credentials = rustix::net::sockopt::socket_peercred(stream)
            .context("failed to ask who is at the other end")?;
        Ok(u32::try_from(credentials.pid.as_raw_nonzero().get())?)
    }

    fn over(stream: Stream, host: String) -> Self {
        Self {
            stream: BufReader::new(stream),
            host,
        }
    }

    /// Sends a request and returns the JSON of the response. A status of 300 or above is an error, except 304 (already
    /// in that state).
    pub(super) fn request(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        self.send(method, path, "", body)?;
        let reply = self.read_reply(method, path)?;
        Ok(serde_json::from_str(&reply).unwrap_or(Value::Null))
    }

    /// Sends one message to a tool server, in a session or to begin one; gives the session's id and the answer.
    pub(super) fn send_message(
        &mut self,
        path: &str,
        session: Option<&str>,
        message: &Value,
    ) -> Result<(Option<String>, Value)> {
        let session = session.map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
        let headers = format!("Accept: application/json, text/event-stream\r\n{session}");
        self.send("POST", path, &headers, Some(message))?;
        let head = self.read_head()?;
        let reply = self.read_body(&head)?;
        ensure!(
            head.status < 300,
            "POST {path} gave {}: {reply}",
            head.status
        );
        let data = reply.lines().filter_map(|line| line.strip_prefix("data:"));
        let answer = data
            .filter_map(|text| serde_json::from_str::<Value>(text).ok())
            .find(|message| message.get("id").is_some());
        Ok((head.session, answer.unwrap_or(Value::Null)))
    }

    /// Sends `pieces` one after another as the body of a `PUT`.
    pub(super) fn put(&mut self, path: &str, pieces: &[&[u8]]) -> Result<()> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n",
            self.host,
        );
        self.write(head.as_bytes())?;
        pieces.iter().try_for_each(|piece| self.write(piece))?;
        self.read_reply("PUT", path).map(drop)
    }

    /// Gets a body, however large, and says how many bytes it had.
    pub(super) fn get_length(&mut self, path: &str) -> Result<usize> {
        self.send("GET", path, "", None)?;
        let head = self.read_head()?;
        if head.status != 200 {
            let reply = self.read_body(&head)?;
            bail!("GET {path} gave {}: {}", head.status, reply.trim());
        }
        let (mut buffer, mut length) = (vec![0; PIECE], 0);
        self.for_each_part(&head, |connection, size| {
            length += size;
            connection.skip(size, &mut buffer)
        })?;
        Ok(length)
    }

    /// Sends a request that turns the connection into the raw output of a container, and gives that.
    pub(super) fn upgrade(mut self, path: &str, body: Option<&Value>) -> Result<Output> {
        self.send(
            "POST",
            path,
            "Connection: Upgrade\r\nUpgrade: tcp\r\n",
            body,
        )?;
        let head = self.read_head()?;
        ensure!(
            matches!(head.status, 101 | 200),
            "POST {path} gave {}",
            head.status
        );
        Ok(Output {
            stream: self.stream,
        })
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&Value>,
    ) -> Result<()> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len(),
        );
        self.write(request.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream
            .get_mut()
            .write_all(bytes)
            .context("failed to send a request")
    }

    /// Reads a response as text. A status of 300 or above is an error, except 304.
    fn read_reply(&mut self, method: &str, path: &str) -> Result<String> {
        let head = self.read_head()?;
        let reply = self.read_body(&head)?;
        ensure!(
            head.status < 300 || head.status == 304,
            "{method} {path} gave {}: {}",
            head.status,
            reply.trim()
        );
        Ok(reply)
    }

    fn read_head(&mut self) -> Result<Head> {
        let line = self.read_line()?;
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .with_context(|| format!("no status in `{line}`"))?;
        let mut head = Head {
            status,
            length: None,
            chunked: false,
            session: None,
        };
        loop {
            let line = self.read_line()?.to_ascii_lowercase();
            match line
                .split_once(':')
                .map(|(name, value)| (name, value.trim()))
            {
                None if line.is_empty() => return Ok(head),
                None => bail!("no header in `{line}`"),
                Some(("content-length", value)) => {
                    head.length = Some(value.parse().context("bad content-length")?)
                }
                Some(("transfer-encoding", "chunked")) => head.chunked = true,
                Some(("mcp-session-id", value)) => head.session = Some(value.to_owned()),
                Some(_) => {}
            }
        }
    }

    fn read_body(&mut self, head: &Head) -> Result<String> {
        let mut body = Vec::new();
        self.for_each_part(head, |connection, size| {
            let start = body.len();
            body.resize(start + size, 0);
            connection.fill(&mut body[start..])
        })?;
        String::from_utf8(body).context("a reply is not text")
    }

    /// Calls `take` for each part of a body with its size; `take` must read just that much.
    fn for_each_part(
        &mut self,
        head: &Head,
        mut take: impl FnMut(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        if !head.chunked {
            return take(self, head.length.unwrap_or(0));
        }
        loop {
            let line = self.read_line()?;
            let size = usize::from_str_radix(line.trim(), 16)
                .with_context(|| format!("no chunk size in `{line}`"))?;
            take(self, size)?;
            self.read_line()?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn skip(&mut self, mut size: usize, buffer: &mut [u8]) -> Result<()> {
        while size > 0 {
            let piece = size.min(buffer.len());
            self.fill(&mut buffer[..piece])?;
            size -= piece;
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.stream.read_exact(bytes).context("a reply ended early")
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        let count = self
            .stream
            .read_line(&mut line)
            .context("failed to read a reply")?;
        ensure!(count > 0, "the connection was closed");
        Ok(line.trim_end().to_owned())
    }
}

/// What a connection runs over.
#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Head {
    status: u16,
    length: Option<usize>,
    chunked: bool,
    /// Of a tool server.
    session: Option<String>,
}

/// The output of a container or of a command in one, in Docker's frames of eight header bytes and a payload.
#[derive(Debug)]
pub(super) struct Output {
    stream: BufReader<Stream>,
}

impl Output {
    /// Waits for the first byte of payload.
    pub(super) fn read_first(&mut self) -> Result<()> {
        let mut bytes = [0; 9];
        self.stream
            .read_exact(&mut bytes)
            .context("the container wrote nothing")
    }

    /// Waits until the other side is done.
    pub(super) fn read_to_end(&mut self) -> Result<()> {
        std::io::copy(&mut self.stream, &mut std::io::sink())
            .map(drop)
            .context("failed to read a container's output")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(reply: &str) -> Connection {
        let (client, mut server) = UnixStream::pair().unwrap();
        server.write_all(reply.as_bytes()).unwrap();
        // Keep the other end readable but finished, as a daemon that closed after its reply.
        std::thread::spawn(move || {
            std::io::copy(&mut server.try_clone().unwrap(), &mut std::io::sink())
        });
        Connection::over(Stream::Unix(client), "test".to_owned())
    }

    #[test]
    fn chunked_and_sized_replies_are_read_one_after_another() {
        let mut connection = connection(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n\
             HTTP/1.1 201 Created\r\nContent-Length: 7\r\n\r\n{\"b\":2}HTTP/1.1 204 No Content\r\n\r\n",
        );
        assert_eq!(connection.request("GET", "/a", None).unwrap()["a"], 1);
        assert_eq!(connection.request("POST", "/b", None).unwrap()["b"], 2);
        assert_eq!(connection.request("POST", "/c", None).unwrap(), Value::Null);
    }

    #[test]
    fn large_bodies_are_counted_and_leave_the_connection_usable() {
        let mut connection = connection(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
             HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        );
        assert_eq!(connection.get_length("/a").unwrap(), 7);
        assert_eq!(connection.get_length("/b").unwrap(), 5);
        connection.put("/c", &[b"a", b"b"]).unwrap();
    }

    #[test]
    fn error_tells_what_the_other_side_said() {
        let mut connection =
            connection("HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nno such");
        let error = connection
            .request("GET", "/x", None)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "GET /x gave 404: no such");
    }
}
