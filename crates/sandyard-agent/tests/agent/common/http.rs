//! Just enough HTTP to see every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

/// A socket of either kind.
pub(crate) trait Socket: Read + Write + Send {
    fn half_close(&self);
    fn duplicate(&self) -> Box<dyn Socket>;
}

macro_rules! socket {
    ($stream:ty) => {
        impl Socket for $stream {
            fn half_close(&self) {
                self.shutdown(std::net::Shutdown::Write).unwrap();
            }

            fn duplicate(&self) -> Box<dyn Socket> {
                let time_limit = Some(Duration::from_secs(180));
                self.set_read_timeout(time_limit).unwrap();
                Box::new(self.try_clone().unwrap())
            }
        }
    };
}

socket!(TcpStream);
socket!(UnixStream);

/// A connection to the agent.
pub(crate) struct Connection {
    pub(crate) writer: Box<dyn Socket>,
    pub(crate) reader: BufReader<Box<dyn Socket>>,
    chunk_left: usize,
    /// Whether the body came with its length and so in one piece.
    is_whole: bool,
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Connection {
    pub(crate) fn new(socket: impl Socket + 'static) -> Self {
        Self {
            reader: BufReader::new(socket.duplicate()),
            writer: Box::new(socket),
            chunk_left: 0,
            is_whole: false,
        }
    }

    /// Makes [`read_chunked`](Self::read_chunked) read the body of an answer, in whichever way that comes.
    pub(crate) fn begin_body(&mut self, reply: &Reply) {
        if let Some(length) = reply.header("content-length") {
            self.chunk_left = length.parse().unwrap();
            self.is_whole = true;
        }
    }

    /// Makes a request and reads the whole answer.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        self.send(method, path, headers, body);
        self.read_reply(method)
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: agent\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        // The agent may refuse a long body before it has all of it.
        let _ = self.writer.write_all(head.as_bytes());
        let _ = self.writer.write_all(body);
    }

    pub(crate) fn read_reply(&mut self, method: &str) -> Reply {
        let mut reply = self.read_head();
        let length = reply
            .header("content-length")
            .map(|text| text.parse::<usize>().unwrap());
        if method == "HEAD" || reply.status == 204 || reply.status < 200 {
            return reply;
        }
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(byte) = self.next_chunked() {
                reply.body.push(byte);
                let rest = std::mem::take(&mut self.chunk_left);
                let start = reply.body.len();
                reply.body.resize(start + rest, 0);
                self.reader.read_exact(&mut reply.body[start..]).unwrap();
                self.chunk_left = 0;
                self.skip_line();
            }
        } else if let Some(length) = length {
            reply.body.resize(length, 0);
            self.reader.read_exact(&mut reply.body).unwrap();
        }
        reply
    }

    pub(crate) fn read_head(&mut self) -> Reply {
        let mut reply = Reply::default();
        let status = self.line();
        reply.status = status
            .split(' ')
            .nth(1)
            .unwrap_or_else(|| panic!("not a status line: {status:?}"))
            .parse()
            .unwrap();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                return reply;
            };
            reply
                .headers
                .push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads exactly `count` bytes of a chunked body.
    pub(crate) fn read_chunked(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            if self.chunk_left == 0 {
                let size = self.line();
                self.chunk_left = usize::from_str_radix(&size, 16).unwrap();
                assert_ne!(self.chunk_left, 0, "the body ended early");
            }
            let take = self.chunk_left.min(count - bytes.len());
            let start = bytes.len();
            bytes.resize(start + take, 0);
            self.reader.read_exact(&mut bytes[start..]).unwrap();
            self.chunk_left -= take;
            if self.chunk_left == 0 && !self.is_whole {
                self.skip_line();
            }
        }
        bytes
    }

    /// The first byte of the next chunk; none at the last.
    fn next_chunked(&mut self) -> Option<u8> {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        if size == 0 {
            self.skip_line();
            return None;
        }
        let mut byte = [0];
        self.reader.read_exact(&mut byte).unwrap();
        self.chunk_left = size - 1;
        Some(byte[0])
    }

    fn skip_line(&mut self) {
        assert_eq!(self.line(), "");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end_matches(['\r', '\n']).to_owned()
    }
}
