//! The handshake with a SOCKS 5 proxy (RFC 1928, RFC 1929).

use std::net::IpAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ProxyTarget;
use super::proxy::{Credentials, Proxy};
use super::reason::reason;

const VERSION: u8 = 5;
const NO_CREDENTIALS: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NONE_ACCEPTED: u8 = 0xff;
const CONNECT: u8 = 1;
const KIND_V4: u8 = 1;
const KIND_NAME: u8 = 3;
const KIND_V6: u8 = 4;

/// Requests a connection. Every read has a known length, so no byte of the destination is consumed.
pub(super) async fn handshake(
    stream: &mut TcpStream,
    proxy: &Proxy,
    target: &ProxyTarget<'_>,
    port: u16,
) -> Result<(), String> {
    let methods: &[u8] = match proxy.credentials {
        Some(_) => &[VERSION, 2, NO_CREDENTIALS, USER_AND_PASSWORD],
        None => &[VERSION, 1, NO_CREDENTIALS],
    };
    send(stream, methods).await?;
    let [version, method] = receive(stream).await?;
    if version != VERSION {
        return Err("its answer is not SOCKS 5".into());
    }
    match (method, &proxy.credentials) {
        (NO_CREDENTIALS, _) => {}
        (USER_AND_PASSWORD, Some(credentials)) => authenticate(stream, credentials).await?,
        (NONE_ACCEPTED, None) => return Err("it requires a user name and a password".into()),
        _ => return Err("it requires another kind of credentials".into()),
    }
    send(stream, &request(target, port)?).await?;
    read_reply(stream).await
}

async fn authenticate(stream: &mut TcpStream, credentials: &Credentials) -> Result<(), String> {
    let mut message = vec![1];
    for text in [credentials.user.as_str(), credentials.password.expose()] {
        message.push(short_len(text)?);
        message.extend(text.as_bytes());
    }
    send(stream, &message).await?;
    match receive(stream).await? {
        [_, 0] => Ok(()),
        _ => Err("it rejects this user name and password".into()),
    }
}

fn request(target: &ProxyTarget<'_>, port: u16) -> Result<Vec<u8>, String> {
    let mut request = vec![VERSION, CONNECT, 0];
    match target {
        ProxyTarget::Address(IpAddr::V4(address)) => {
            request.push(KIND_V4);
            request.extend(address.octets());
        }
        ProxyTarget::Address(IpAddr::V6(address)) => {
            request.push(KIND_V6);
            request.extend(address.octets());
        }
        ProxyTarget::Name(name) => {
            request.extend([KIND_NAME, short_len(name)?]);
            request.extend(name.as_bytes());
        }
    }
    request.extend(port.to_be_bytes());
    Ok(request)
}

async fn read_reply(stream: &mut TcpStream) -> Result<(), String> {
    let [version, code, _, kind] = receive(stream).await?;
    if version != VERSION {
        return Err("its answer is not SOCKS 5".into());
    }
    if code != 0 {
        return Err(failure(code));
    }
    // The address that the proxy connects from, which is not needed.
    let bytes = match kind {
        KIND_V4 => 4,
        KIND_V6 => 16,
        KIND_NAME => usize::from(receive::<1>(stream).await?[0]),
        _ => return Err("its answer is not SOCKS 5".into()),
    };
    let mut rest = vec![0; bytes + 2];
    stream
        .read_exact(&mut rest)
        .await
        .map_err(|err| reason(&err))?;
    Ok(())
}

fn failure(code: u8) -> String {
    match code {
        1 => "it failed".into(),
        2 => "its rules do not allow this".into(),
        3 | 4 => "it has no route".into(),
        5 => "connection refused".into(),
        6 => "the connection took too long".into(),
        7 => "it does not support CONNECT".into(),
        8 => "it does not support this kind of address".into(),
        code => format!("it failed with code {code}"),
    }
}

fn short_len(text: &str) -> Result<u8, String> {
    u8::try_from(text.len()).map_err(|_| "a name is too long for SOCKS 5".into())
}

async fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).await.map_err(|err| reason(&err))
}

async fn receive<const N: usize>(stream: &mut TcpStream) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    stream
        .read_exact(&mut bytes)
        .await
        .map_err(|err| reason(&err))?;
    Ok(bytes)
}
