//! Listeners of the host and of other sandboxes, by address.

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{Group::Network, Severity::Critical};
use crate::plan::NetTarget;
use crate::search::contains;
use crate::sys::Errno;

const NO_ANSWER: &str = "no answer";
/// How long to connect. What is refused is so at once.
const LIMIT: Duration = Duration::from_secs(1);
/// How long to wait for the greeting of one who let us in: on a host that is very busy it takes its time, and without it nothing
/// would seem to be wrong.
const GREETING_LIMIT: Duration = Duration::from_secs(6);

pub(super) const CHECKS: &[Check] = &[
    Check::new(Network, Critical, "network.loopback", loopback)
.title("The host's loopback cannot be reached")
.attempts("connect to the planted port at 127.0.0.1, other 127 addresses, 0.0.0.0, ::1 and mapped forms")
.expects(NO_ANSWER)
        .on_host(OnHost::Breaches),
    Check::new(Network, Critical, "network.loopback-udp", loopback_udp)
.title("The host's loopback takes no datagram")
.attempts("send a datagram to the planted port and wait for its answer")
.expects(NO_ANSWER)
        .on_host(OnHost::Breaches),
    Check::new(Network, Critical, "network.lan", lan)
.title("The host's network address cannot be reached")
.attempts("connect to the planted port at the host's own address in its network")
.expects(NO_ANSWER)
        .on_host(OnHost::Breaches),
    Check::new(Network, Critical, "network.neighbour", neighbour)
.title("Another sandbox's port cannot be reached")
.attempts("connect to the port that another sandbox listens on, at 127.0.0.1 and at the host's address")
.expects(NO_ANSWER)
    .on_host(OnHost::Breaches),
    Check::new(Network, Critical, "network.own-ports", own_ports)
.title("Our ports are not the host's")
.attempts("listen at the very address and port that the host listens on")
.expects("it works, since the loopback is our own")
        .on_host(OnHost::Breaches),
];

fn loopback(context: &Context) -> Outcome {
    let Some(target) = &context.plan.loopback_tcp else {
        return Outcome::inconclusive("no port was planted");
    };
    let addresses = [
        target.address,
        Ipv4Addr::LOCALHOST.into(),
        Ipv4Addr::new(127, 0, 1, 1).into(),
        Ipv4Addr::UNSPECIFIED.into(),
        Ipv6Addr::LOCALHOST.into(),
        Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
        Ipv6Addr::UNSPECIFIED.into(),
    ];
    greeted(target, addresses)
}

fn lan(context: &Context) -> Outcome {
    match &context.plan.lan_tcp {
        None => Outcome::held("the host has no network address"),
        Some(target) => greeted(target, [target.address]),
    }
}

fn neighbour(context: &Context) -> Outcome {
    let Some(neighbour) = &context.plan.neighbour else {
        return Outcome::inconclusive("no neighbour");
    };
    let host = context.plan.lan_tcp.as_ref().map(|target| target.address);
    greeted(
        &neighbour.tcp,
        [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
            .into_iter()
            .chain(host),
    )
}

/// Whether any of the addresses sends the greeting at that port.
fn greeted(target: &NetTarget, addresses: impl IntoIterator<Item = IpAddr>) -> Outcome {
    let mut answers = Vec::new();
    for address in addresses {
        match greeting(SocketAddr::new(address, target.port)) {
            Ok(bytes) if contains(&bytes, &target.greeting) => {
                return Outcome::breached(format_args!("{address} sent the greeting"));
            }
            Ok(_) => answers.push("no greeting".to_owned()),
            Err(answer) => answers.push(answer),
        }
    }
    answers.dedup();
    Outcome::held(answers.join(", "))
}

fn greeting(address: SocketAddr) -> Result<Vec<u8>, String> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).map_err(describe)?;
    stream
        .set_read_timeout(Some(GREETING_LIMIT))
        .map_err(describe)?;
    let mut bytes = vec![0; 256];
    let count = stream.read(&mut bytes).map_err(describe)?;
    bytes.truncate(count);
    Ok(bytes)
}

fn describe(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "no answer".to_owned(),
        _ => Errno::from(error).to_string(),
    }
}

fn loopback_udp(context: &Context) -> Outcome {
    let Some(target) = &context.plan.loopback_udp else {
        return Outcome::inconclusive("no port was planted");
    };
    let answer = (|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_read_timeout(Some(GREETING_LIMIT))?;
        socket.connect((target.address, target.port))?;
        socket.send(b"?")?;
        let mut bytes = [0; 256];
        let count = socket.recv(&mut bytes)?;
        Ok(bytes[..count].to_vec())
    })();
    match answer {
        Ok(bytes) if contains(&bytes, &target.greeting) => Outcome::breached("it answered"),
        Ok(_) => Outcome::held("another answer"),
        Err(error) => Outcome::held(describe(error)),
    }
}

fn own_ports(context: &Context) -> Outcome {
    let Some(target) = &context.plan.loopback_tcp else {
        return Outcome::inconclusive("no port was planted");
    };
    match TcpListener::bind((target.address, target.port)) {
        Ok(_) => Outcome::held("it worked"),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Outcome::breached("the host's listener has it")
        }
        Err(error) => Outcome::inconclusive(error),
    }
}
