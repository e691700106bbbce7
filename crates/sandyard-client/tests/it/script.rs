//! A server that answers each connection with what a test wrote down, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use sandyard_client::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to one connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// This is sent, then the connection ends as HTTP says.
    Answer(String),
    /// The request is read and the connection cut.
    Cut,
}

impl Act {
    /// A whole answer with a JSON body.
    pub(crate) fn json(status: &str, body: &str) -> Self {
        Self::Answer(format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// Events in a body that ends properly.
    pub(crate) fn events(body: &str) -> Self {
        Self::Answer(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        ))
    }

    /// Events in a body that breaks off.
    pub(crate) fn cut_events(body: &str) -> Self {
        Self::Answer(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\nff\r\nhalf",
            body.len()
        ))
    }
}

/// The server.
pub(crate) struct Script {
    pub(crate) client: Client,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Script {
    /// Plays the acts, one a connection; later ones are refused.
    pub(crate) async fn play(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a socket of this host");
        let url = format!(
            "http://{}",
            listener.local_addr().expect("a socket of this host")
        );
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        tokio::spawn(async move {
            for act in acts {
                let (mut socket, _) = listener.accept().await.expect("a socket of this host");
                let request = read_request(&mut socket).await;
                seen.lock().expect("nobody panics with it").push(request);
                if let Act::Answer(text) = act {
                    socket
                        .write_all(text.as_bytes())
                        .await
                        .expect("a socket of this host");
                }
            }
        });
        let client = Client::new(&url, Some("e2b_key")).expect("a socket of this host");
        Self { client, requests }
    }

    /// What was asked, head and body of each request.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("nobody panics with it").clone()
    }

    /// The value of a header in each request.
    pub(crate) fn header(&self, name: &str) -> Vec<Option<String>> {
        let of = |request: String| {
            let prefix = format!("{name}: ");
            let mut lines = request
                .lines()
                .filter_map(|line| line.strip_prefix(&prefix));
            lines.next().map(str::to_owned)
        };
        self.requests().into_iter().map(of).collect()
    }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().expect("a number"));
            let is_chunked = head.contains("transfer-encoding: chunked");
            let is_whole = body.len() >= length && (!is_chunked || body.ends_with("0\r\n\r\n"));
            if is_whole {
                return text;
            }
        }
        if socket
            .read_buf(&mut bytes)
            .await
            .expect("a socket of this host")
            == 0
        {
            return text;
        }
    }
}
