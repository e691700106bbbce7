//! Socket families beyond the plain ones: most reach parts of the kernel that nobody inside needs, some reach past
//! every network namespace.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Kernel,
    Severity::{High, Medium},
};
use crate::sys::{self, Errno, sys};

const REFUSED: &str = "refused";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Kernel, High, "sockets.vsock", vsock)
.title("The machine's own hypervisor cannot be called")
.attempts("socket(AF_VSOCK): it knows no network namespace")
.expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, Medium, "sockets.alg", alg)
.title("The kernel's cipher interface is closed")
.attempts("socket(AF_ALG)")
.expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, Medium, "sockets.packet", packet)
.title("Raw packets are closed")
.attempts("socket(AF_PACKET) raw and datagram")
.expects("refused to the user; root at most in its own network namespace")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Kernel, Medium, "sockets.rare", rare)
.title("Rare protocols are closed")
.attempts("sockets of Bluetooth, CAN, RDS, TIPC, XDP, key, X.25, NFC, KCM, QRTR, SMC, AX.25, MCTP")
.expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, High, "sockets.netlink", netlink)
.title("Netlink reaches no part outside our network")
.attempts("netlink sockets of SELinux, connector, SCSI, RDMA, crypto; and the state of the audit system")
.expects(REFUSED)
        .on_host(OnHost::Depends),
];

fn socket(family: i32, kind: i32, protocol: i32) -> sys::Result {
    sys!(
        libc::SYS_socket,
        family,
        kind | libc::SOCK_CLOEXEC,
        protocol
    )
}

fn vsock(_: &Context) -> Outcome {
    sys::failed(socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0))
}

fn alg(_: &Context) -> Outcome {
    sys::failed(socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0))
}

fn packet(context: &Context) -> Outcome {
    let everything = i32::from(0x0003_u16.to_be());
    let made = socket(libc::AF_PACKET, libc::SOCK_RAW, everything).or(socket(
        libc::AF_PACKET,
        libc::SOCK_DGRAM,
        everything,
    ));
    // With CAP_NET_RAW as documented, root inside sees its own loopback and no more.
    let documented = context
        .plan
        .allowed_caps
        .is_some_and(|allowed| allowed >> 13 & 1 == 1);
    match made {
        Ok(_) if documented && context.is_root() => {
            Outcome::held("root has CAP_NET_RAW as documented")
        }
        result => sys::failed(result),
    }
}

fn rare(_: &Context) -> Outcome {
    let families = [
        ("Bluetooth", 31),
        ("CAN", 29),
        ("RDS", 21),
        ("TIPC", 30),
        ("XDP", 44),
        ("key", 15),
        ("X.25", 9),
        ("NFC", 39),
        ("KCM", 41),
        ("QRTR", 42),
        ("SMC", 43),
        ("AX.25", 3),
        ("IPX", 4),
        ("AppleTalk", 5),
        ("NetRom", 6),
        ("Rose", 11),
        ("DECnet", 12),
        ("LLC", 26),
        ("InfiniBand", 27),
        ("PPPoX", 24),
        ("IUCV", 32),
        ("RxRPC", 33),
        ("Phonet", 35),
        ("CAIF", 37),
        ("MCTP", 45),
    ];
    let kinds = [
        libc::SOCK_STREAM,
        libc::SOCK_DGRAM,
        libc::SOCK_RAW,
        libc::SOCK_SEQPACKET,
    ];
    let made: Vec<String> = families
        .iter()
        .filter(|(_, family)| {
            kinds
                .iter()
                .any(|kind| (0..4).any(|protocol| socket(*family, *kind, protocol).is_ok()))
        })
        .map(|(name, family)| format!("{name} ({family})"))
        .collect();
    Outcome::breached_by(&made, "none could be made")
}

/// Each is one table for the whole machine. Route, netfilter, sock-diag and generic are per network namespace.
fn netlink(_: &Context) -> Outcome {
    let protocols = [
        ("SELinux", 7),
        ("iSCSI", 8),
        ("connector", 11),
        ("SCSI", 18),
        ("RDMA", 20),
        ("crypto", 21),
    ];
    let made: Vec<String> = protocols
        .iter()
        .filter(|(_, protocol)| socket(libc::AF_NETLINK, libc::SOCK_RAW, *protocol).is_ok())
        .map(|(name, protocol)| format!("{name} ({protocol})"))
        .collect();
    match audit_state() {
        Ok(_) => Outcome::breached("the audit system returned its state"),
        Err(errno) => {
            Outcome::breached_by(&made, format_args!("none could be made; audit: {errno}"))
        }
    }
}

/// Asks for the host's audit state. PAM and sudo need such a socket; the host's answers they do not need.
fn audit_state() -> sys::Result {
    const AUDIT: i32 = 9;
    const AUDIT_GET: u16 = 1000;
    const NLM_F_REQUEST: u16 = 1;
    const NLMSG_ERROR: u16 = 2;
    let socket = socket(
        libc::AF_NETLINK,
        libc::SOCK_RAW | libc::SOCK_NONBLOCK,
        AUDIT,
    )?;
    // `struct nlmsghdr`: length, type, flags, sequence, port.
    let mut request = Vec::from(16_u32.to_ne_bytes());
    request.extend(AUDIT_GET.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    // An address of all zeroes but the family is the kernel.
    let mut to = [0_u8; 12];
    to[0] = 16;
    sys!(libc::SYS_sendto, socket, &request[..], 16, 0, &to[..], 12)?;
    // The kernel answers within the send.
    let mut reply = [0_u8; 256];
    let size = sys!(libc::SYS_recvfrom, socket, &mut reply[..], 256, 0, 0, 0)?;
    if u16::from_ne_bytes([reply[4], reply[5]]) == NLMSG_ERROR {
        return Err(Errno(-i32::from_ne_bytes([
            reply[16], reply[17], reply[18], reply[19],
        ])));
    }
    Ok(size)
}
