//! A name server on loopback, and names that ask it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::Names;
use super::sources::{Settings, Sources};

/// What the server says to a question; nothing at all, if there is nothing. The flag says whether it came by TCP.
type Script = dyn Fn(&Message, bool) -> Option<Message> + Send + Sync;

/// A name server. It lives as long as the test's runtime.
pub(crate) struct NameServer {
    /// Where it listens, by UDP and by TCP.
    pub(crate) at: SocketAddr,
    query_sent: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    /// Starts one that follows a script.
    pub(crate) async fn start(
        script: impl Fn(&Message, bool) -> Option<Message> + Send + Sync + 'static,
    ) -> Self {
        // A port that is free for UDP may be taken for TCP.
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
                break (udp, tcp);
            }
        };
        let (at, query_sent) = (udp.local_addr().unwrap(), Arc::default());
        let script: Arc<Script> = Arc::new(script);
        tokio::spawn(by_udp(udp, script.clone(), Arc::clone(&query_sent)));
        tokio::spawn(by_tcp(tcp, script, Arc::clone(&query_sent)));
        Self { at, query_sent }
    }

    /// Starts one that knows these records and no other name.
    pub(crate) async fn with_records(records: Vec<Record>) -> Self {
        Self::start(move |message, _| Some(from_records(message, &records))).await
    }

    /// What it was asked, as `example.com. A`.
    pub(crate) fn query_sent(&self) -> Vec<String> {
        self.query_sent.lock().unwrap().clone()
    }

    /// Names that ask this server, with an empty hosts file.
    pub(crate) fn names(&self) -> Names {
        names_with(Settings {
            name_servers: vec![self.at],
            ..files_in("/nonexistent".into())
        })
    }
}

/// Settings that read `resolv.conf` and `hosts` in a folder, at every look-up.
pub(super) fn files_in(folder: PathBuf) -> Settings {
    Settings {
        name_servers: Vec::new(),
        resolv_conf: folder.join("resolv.conf"),
        hosts: folder.join("hosts"),
        check_interval: Duration::ZERO,
        timeout: Duration::from_secs(60),
    }
}

/// Names by such settings.
pub(super) fn names_with(settings: Settings) -> Names {
    Names {
        timeout: settings.timeout,
        sources: Arc::new(Sources::new(settings).unwrap()),
    }
}

/// Names with nobody to ask.
pub(crate) fn names_without_servers() -> Names {
    names_with(files_in("/nonexistent".into()))
}

/// A record of a name's address.
pub(crate) fn address_record(name: &str, address: IpAddr) -> Record {
    Record::from_rdata(Name::from_ascii(name).unwrap(), 60, address.into())
}

/// An empty answer to a question.
pub(crate) fn reply_to(message: &Message, code: ResponseCode) -> Message {
    let mut reply = Message::response(message.id, OpCode::Query);
    reply.metadata.recursion_available = true;
    reply.metadata.response_code = code;
    reply.add_queries(message.queries.iter().cloned());
    reply
}

/// The answer of a server that knows these records: aliases are followed, other names do not exist.
pub(crate) fn from_records(message: &Message, records: &[Record]) -> Message {
    let query = &message.queries[0];
    let (mut name, mut found, mut exists) = (query.name().clone(), Vec::new(), false);
    while let Some(alias) = records
        .iter()
        .find(|record| record.name == name && record.record_type() == RecordType::CNAME)
    {
        exists = true;
        found.push(alias.clone());
        match &alias.data {
            RData::CNAME(target) if query.query_type() != RecordType::CNAME => {
                name = target.0.clone();
            }
            _ => break,
        }
    }
    for record in records.iter().filter(|record| record.name == name) {
        exists = true;
        if record.record_type() == query.query_type() && !found.contains(record) {
            found.push(record.clone());
        }
    }
    let code = if exists {
        ResponseCode::NoError
    } else {
        ResponseCode::NXDomain
    };
    let mut reply = reply_to(message, code);
    reply.add_answers(found);
    reply
}

async fn by_udp(socket: UdpSocket, script: Arc<Script>, query_sent: Arc<Mutex<Vec<String>>>) {
    let mut buffer = [0; 4096];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
        if let Some(reply) = follow(&buffer[..len], &*script, &query_sent, false) {
            socket.send_to(&reply, from).await.unwrap();
        }
    }
}

async fn by_tcp(listener: TcpListener, script: Arc<Script>, query_sent: Arc<Mutex<Vec<String>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(one_connection(stream, script.clone(), query_sent.clone()));
    }
}

async fn one_connection(
    mut stream: TcpStream,
    script: Arc<Script>,
    query_sent: Arc<Mutex<Vec<String>>>,
) {
    while let Ok(len) = stream.read_u16().await {
        let mut packet = vec![0; len.into()];
        stream.read_exact(&mut packet).await.unwrap();
        if let Some(reply) = follow(&packet, &*script, &query_sent, true) {
            stream
                .write_u16(reply.len().try_into().unwrap())
                .await
                .unwrap();
            stream.write_all(&reply).await.unwrap();
        }
    }
}

fn follow(
    packet: &[u8],
    script: &Script,
    query_sent: &Mutex<Vec<String>>,
    is_tcp: bool,
) -> Option<Vec<u8>> {
    let message = Message::from_vec(packet).unwrap();
    let query = &message.queries[0];
    let line = format!("{} {}", query.name().to_ascii(), query.query_type());
    query_sent.lock().unwrap().push(line);
    Some(script(&message, is_tcp)?.to_vec().unwrap())
}
