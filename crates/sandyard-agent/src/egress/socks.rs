//! SOCKS 5 (RFC 1928), up to its request. No byte after it is read, so the gateway finds the rest on the connection.

use std::cell::RefCell;
use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use sandyard_wire::egress::Via;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::name_addresses::NameAddresses;
use super::proxy::{ProxyRequest, Refusal, read};
use super::target::Host;

/// The first byte of every message of a program.
pub(super) const VERSION: u8 = 5;

/// The only method of authentication: none.
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;

const CONNECT: u8 = 1;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Reply code: a failure without its own code.
pub(super) const GENERAL_FAILURE: u8 = 1;
const HOST_UNREACHABLE: u8 = 4;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS_TYPE: u8 = 8;

/// Reads a program's request.
pub(super) async fn read_request(
    stream: &mut TcpStream,
    names: &RefCell<NameAddresses>,
) -> Result<ProxyRequest, Option<Refusal>> {
    let [_, count] = read(stream).await.ok_or(None)?;
    let mut methods = vec![0; usize::from(count)];
    stream.read_exact(&mut methods).await.map_err(|_| None)?;
    if !methods.contains(&NO_AUTHENTICATION) {
        return Err(Some(Refusal(vec![VERSION, NO_METHOD])));
    }
    let chosen = stream.write_all(&[VERSION, NO_AUTHENTICATION]).await;
    chosen.map_err(|_| None)?;
    let [version, command, _, kind] = read(stream).await.ok_or(None)?;
    if version != VERSION {
        return Err(Some(refusal(GENERAL_FAILURE)));
    }
    let host = read_host(stream, kind).await?;
    let port = u16::from_be_bytes(read(stream).await.ok_or(None)?);
    // Checked after the address is read, so that no unread byte cuts the refusal off.
    if command != CONNECT {
        return Err(Some(refusal(NO_SUCH_COMMAND)));
    }
    let host = host.and_then(|host| host.for_gateway(&mut names.borrow_mut()));
    match host.filter(|_| port != 0) {
        Some(host) => Ok(ProxyRequest {
            host,
            port,
            via: Via::Socks,
            early: Bytes::new(),
        }),
        None => Err(Some(refusal(HOST_UNREACHABLE))),
    }
}

/// Reads the host; `None` when it is not a valid host name.
async fn read_host(stream: &mut TcpStream, kind: u8) -> Result<Option<Host>, Option<Refusal>> {
    match kind {
        IPV4 => {
            let bytes: [u8; 4] = read(stream).await.ok_or(None)?;
            Ok(Some(Host::Address(Ipv4Addr::from(bytes).into())))
        }
        IPV6 => {
            let bytes: [u8; 16] = read(stream).await.ok_or(None)?;
            Ok(Some(Host::Address(Ipv6Addr::from(bytes).into())))
        }
        NAME => {
            let [length] = read(stream).await.ok_or(None)?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await.map_err(|_| None)?;
            Ok(std::str::from_utf8(&name).ok().and_then(Host::parse))
        }
        _ => Err(Some(refusal(NO_SUCH_ADDRESS_TYPE))),
    }
}

/// A reply that ends the connection.
pub(super) fn refusal(code: u8) -> Refusal {
    Refusal(vec![VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0])
}
