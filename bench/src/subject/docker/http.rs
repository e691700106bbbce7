//! As much HTTP/1.1 over a Unix socket as Docker's API needs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// A connection that stays open from request to request, as every Docker client's does.
#[derive(Debug)]
pub(super) struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects to the daemon at `socket`.
    pub(super) fn open(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)
            .with_context(|| format!("failed to connect to `{}`", socket.display()))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a request and gives the reply's JSON; a status of 300 and more is an error, save 304 (already so).
    pub(super) fn request(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        self.send(method, path, "", body)?;
        let head = self.read_head()?;
        let reply = self.read_body(&head)?;
        ensure!(
            head.status < 300 || head.status == 304,
            "{method} {path} gave {}: {}",
            head.status,
            reply.trim()
        );
        Ok(serde_json::from_str(&reply).unwrap_or(Value::Null))
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
            "{method} {path} HTTP/1.1\r\nHost: docker\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        );
        self.stream
            .get_mut()
            .write_all(request.as_bytes())
            .context("failed to send a request to Docker")
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
                Some(_) => {}
            }
        }
    }

    fn read_body(&mut self, head: &Head) -> Result<String> {
        let mut body = Vec::new();
        if head.chunked {
            loop {
                let line = self.read_line()?;
                let size = usize::from_str_radix(line.trim(), 16)
                    .with_context(|| format!("no chunk size in `{line}`"))?;
                self.read_into(&mut body, size)?;
                self.read_line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.read_into(&mut body, head.length.unwrap_or(0))?;
        }
        String::from_utf8(body).context("Docker's reply is not text")
    }

    fn read_into(&mut self, body: &mut Vec<u8>, size: usize) -> Result<()> {
        let start = body.len();
        body.resize(start + size, 0);
        self.stream
            .read_exact(&mut body[start..])
            .context("Docker's reply ended early")
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        let count = self
            .stream
            .read_line(&mut line)
            .context("failed to read Docker's reply")?;
        ensure!(count > 0, "Docker closed the connection");
        Ok(line.trim_end().to_owned())
    }
}

#[derive(Debug)]
struct Head {
    status: u16,
    length: Option<usize>,
    chunked: bool,
}

/// The output of a container or of a command in one, in Docker's frames of eight header bytes and a payload.
#[derive(Debug)]
pub(super) struct Output {
    stream: BufReader<UnixStream>,
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
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(reply.as_bytes()).unwrap();
        // Keep the other end readable but finished, as a daemon that closed after its reply.
        std::thread::spawn(move || {
            std::io::copy(&mut theirs.try_clone().unwrap(), &mut std::io::sink())
        });
        Connection {
            stream: BufReader::new(ours),
        }
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
    fn error_tells_what_docker_said() {
        let mut connection =
            connection("HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nno such");
        let error = connection
            .request("GET", "/x", None)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "GET /x gave 404: no such");
    }
}
