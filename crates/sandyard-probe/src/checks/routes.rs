//! The world: routes, names, and the addresses where clouds keep their secrets.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Network,
    Severity::{Critical, High, Low, Medium},
};
use crate::search::read_start;
use crate::sys::{self, sys};

const LIMIT: Duration = Duration::from_secs(1);

pub(super) const CHECKS: &[Check] = &[
    Check::new(Network, High, "network.links", links)
        .title("The only network link is our own loopback")
        .attempts("list the links in /proc/net/dev")
        .expects("`lo`, and nothing that leads anywhere")
        .on_host(OnHost::Breaches),
    Check::new(Network, Low, "network.shown-links", shown_links)
        .title("The host's network links are not shown")
        .attempts("list /sys/class/net")
        .expects("`lo`, and nothing that leads anywhere")
        .on_host(OnHost::Breaches),
    Check::new(Network, Critical, "network.metadata", metadata)
        .title("The cloud's metadata service cannot be reached")
        .attempts(
            "ask 169.254.169.254, 169.254.170.2, 100.100.100.200 and fd00:ec2::254 for their pages",
        )
        .expects("no answer"),
    Check::new(Network, High, "network.world", world)
        .title("The world cannot be reached")
        .attempts("connect to addresses of public name servers, IPv4 and IPv6, at 53 and 443")
        .expects("no answer"),
    Check::new(Network, High, "network.names", names)
        .title("No name server answers")
        .attempts("ask every server of /etc/resolv.conf, the local stub and public ones for a name")
        .expects("no address"),
    Check::new(Network, High, "network.ping", ping)
        .title("The host does not answer a ping")
        .attempts("ICMP echo to the host's address by ping socket and raw socket")
        .expects("no answer")
        .on_host(OnHost::Depends),
    Check::new(Network, Medium, "network.broadcast", broadcast)
        .title("No broadcast or multicast leaves")
        .attempts("send to 255.255.255.255, 224.0.0.251 and ff02::1")
        .expects("no way there"),
];

fn links(_: &Context) -> Outcome {
    let table =
        String::from_utf8_lossy(&read_start("/proc/net/dev").unwrap_or_default()).into_owned();
    let names = table
        .lines()
        .skip(2)
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    leading_out(names)
}

fn shown_links(_: &Context) -> Outcome {
    let entries = std::fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    leading_out(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()))
}

fn leading_out(names: impl Iterator<Item = String>) -> Outcome {
    let links: Vec<String> = names.filter(|name| !is_blind(name)).collect();
    Outcome::breached_by(&links, "only `lo`")
}

/// The loopback, and the fallback tunnel ends which some kernels give every network namespace: they lead nowhere.
fn is_blind(name: &str) -> bool {
    const FALLBACK: [&str; 12] = [
        "lo",
        "tunl0",
        "gre0",
        "gretap0",
        "erspan0",
        "ip_vti0",
        "ip6_vti0",
        "sit0",
        "ip6tnl0",
        "ip6gre0",
        "bonding_masters",
        "teql0",
    ];
    FALLBACK.contains(&name)
}

fn metadata(_: &Context) -> Outcome {
    let addresses: [IpAddr; 4] = [
        Ipv4Addr::new(169, 254, 169, 254).into(),
        Ipv4Addr::new(169, 254, 170, 2).into(),
        Ipv4Addr::new(100, 100, 100, 200).into(),
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254).into(),
    ];
    unreachable(addresses.map(|address| SocketAddr::new(address, 80)))
}

fn world(_: &Context) -> Outcome {
    let addresses: [IpAddr; 4] = [
        Ipv4Addr::new(1, 1, 1, 1).into(),
        Ipv4Addr::new(8, 8, 8, 8).into(),
        Ipv4Addr::new(9, 9, 9, 9).into(),
        Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111).into(),
    ];
    unreachable(
        addresses
            .into_iter()
            .flat_map(|address| [53, 443].map(|port| SocketAddr::new(address, port))),
    )
}

/// Connects and asks; only an answer is a breach, for a gateway may accept everything and let nothing through.
fn unreachable(addresses: impl IntoIterator<Item = SocketAddr>) -> Outcome {
    let mut answers = Vec::new();
    for address in addresses {
        let reply = (|| {
            let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.write_all(b"GET / HTTP/1.0\r\nHost: metadata\r\n\r\n")?;
            stream.read(&mut [0; 16])
        })();
        match reply {
            Ok(count) if count > 0 => return Outcome::breached(format_args!("{address} answered")),
            Ok(_) => answers.push("accepted and closed".to_owned()),
            Err(error) => answers.push(sys::Errno::from(error).to_string()),
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::held(answers.join(", "))
}

fn names(_: &Context) -> Outcome {
    let file =
        String::from_utf8_lossy(&read_start("/etc/resolv.conf").unwrap_or_default()).into_owned();
    let configured = file
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    let usual: [IpAddr; 3] = [
        Ipv4Addr::new(127, 0, 0, 53).into(),
        Ipv4Addr::LOCALHOST.into(),
        Ipv4Addr::new(8, 8, 8, 8).into(),
    ];
    let answered: Vec<String> = configured
        .chain(usual)
        .filter(|server| resolves(*server))
        .map(|server| format!("{server} knew an address"))
        .collect();
    Outcome::breached_by(&answered, "none knew an address")
}

/// Whether a server knows an address for a name. One inside may answer that it cannot say.
fn resolves(server: IpAddr) -> bool {
    // One question, recursion wanted: `example.com`, type A, class IN.
    let query =
        b"\x53\x59\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01";
    let any: IpAddr = if server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let ask = || -> std::io::Result<[u8; 512]> {
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_read_timeout(Some(LIMIT))?;
        socket.connect((server, 53))?;
        socket.send(query)?;
        let mut reply = [0; 512];
        socket.recv(&mut reply)?;
        Ok(reply)
    };
    // How many records answer the question.
    ask().is_ok_and(|reply| reply[6..8] != [0, 0])
}

fn ping(context: &Context) -> Outcome {
    let Some(target) = &context.plan.lan_tcp else {
        return Outcome::held("the host has no network address");
    };
    let IpAddr::V4(address) = target.address else {
        return Outcome::held("the host has no IPv4 address");
    };
    let mut answers = Vec::new();
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        match echo(kind, address) {
            Ok(_) => return Outcome::breached("it answered"),
            Err(errno) => answers.push(errno.to_string()),
        }
    }
    Outcome::held(answers.join(", "))
}

fn echo(kind: i32, address: Ipv4Addr) -> sys::Result {
    let socket = sys!(libc::SYS_socket, libc::AF_INET, kind, libc::IPPROTO_ICMP)?;
    // `struct timeval` of one second.
    let limit = [1_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
    sys!(
        libc::SYS_setsockopt,
        socket,
        libc::SOL_SOCKET,
        libc::SO_RCVTIMEO,
        &limit[..],
        16
    )?;
    // Echo request, its checksum worked out by hand for these eight bytes: ~(0x0800 + 0x5359 + 0x0001).
    let request = [8, 0, 0xa4, 0xa5, 0x53, 0x59, 0, 1];
    let family = u16::try_from(libc::AF_INET)
        .expect("AF_INET is 2")
        .to_ne_bytes();
    let to = [&family[..], &[0, 0], &address.octets(), &[0; 8]].concat();
    sys!(libc::SYS_sendto, socket, &request[..], 8, 0, &to[..], 16)?;
    let mut reply = [0_u8; 128];
    sys!(libc::SYS_recvfrom, socket, &mut reply[..], 128, 0, 0, 0)
}

fn broadcast(_: &Context) -> Outcome {
    let sent = |any: IpAddr, to: IpAddr| -> std::io::Result<usize> {
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_broadcast(true)?;
        socket.send_to(b"?", (to, 5353))
    };
    let v4 = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let v6 = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let targets: [(IpAddr, IpAddr); 3] = [
        (v4, Ipv4Addr::BROADCAST.into()),
        (v4, Ipv4Addr::new(224, 0, 0, 251).into()),
        (v6, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into()),
    ];
    let went: Vec<String> = targets
        .iter()
        .filter(|(any, to)| sent(*any, *to).is_ok())
        .map(|(_, to)| to.to_string())
        .collect();
    // On a loopback alone it goes round to ourselves.
    if went.is_empty() || links_are_blind() {
        return Outcome::held("nothing to send it on");
    }
    Outcome::breached(format_args!("sent to {}", went.join(", ")))
}

fn links_are_blind() -> bool {
    let table =
        String::from_utf8_lossy(&read_start("/proc/net/dev").unwrap_or_default()).into_owned();
    table
        .lines()
        .skip(2)
        .filter_map(|line| line.split_once(':'))
        .all(|(name, _)| is_blind(name.trim()))
}
