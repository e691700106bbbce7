//! Egress: the agent hands connections of programs to the client that attaches as a gateway.

mod bounds;
mod channels;
mod lookup;
mod namespace;
mod proxy;

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};

use crate::common::{Agent, TIMEOUT};

/// Starts an agent with every door of egress that needs no network of its own.
fn start() -> Agent {
    Agent::start_with(&[
        "--proxy",
        "127.0.0.1:0",
        "--names",
        "127.0.0.1:0",
        "--names-tcp",
        "127.0.0.1:0",
    ])
}

/// A connection to the agent's proxy.
fn connect(agent: &Agent) -> TcpStream {
    let stream = TcpStream::connect(agent.listener_address("proxy")).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// A connection to the agent's proxy on which a tunnel was asked for.
fn ask_for(agent: &Agent, target: &str) -> TcpStream {
    let mut stream = connect(agent);
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// A socket that asks the agent's server of names.
fn requester(agent: &Agent) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(agent.listener_address("names")).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

/// The next datagram.
fn datagram(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 8192];
    let length = socket.recv(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

/// A query for a name.
fn query(id: u16, name: &str, kind: u16) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        query.push(label.len().try_into().unwrap());
        query.extend(label.bytes());
    }
    query.push(0);
    query.extend(kind.to_be_bytes());
    query.extend(1u16.to_be_bytes());
    query
}

/// Everything until the other side closes.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    rest
}

/// Reads exactly `count` bytes.
fn exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}
