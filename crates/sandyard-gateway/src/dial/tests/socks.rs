//! Through a proxy that speaks SOCKS 5.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{
    PASSWORD, dialer_by, expect_echo, listen, start_echo, start_saying, to_address, to_name,
};

/// A small proxy: it connects to one place whatever is asked for, and keeps what that was.
struct SocksProxy {
    at: SocketAddr,
    query_sent: Arc<Mutex<Vec<String>>>,
}

impl SocksProxy {
    async fn start(to: SocketAddr, credentials: Option<&'static str>) -> Self {
        let (listener, at) = listen().await;
        let query_sent: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = query_sent.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, to, credentials, recorded.clone()));
            }
        });
        Self { at, query_sent }
    }

    fn query_sent(&self) -> Vec<String> {
        self.query_sent.lock().unwrap().clone()
    }
}

async fn read_bytes(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

async fn read_text(stream: &mut TcpStream) -> String {
    let len = stream.read_u8().await.unwrap();
    String::from_utf8(read_bytes(stream, len.into()).await).unwrap()
}

async fn serve(
    mut stream: TcpStream,
    to: SocketAddr,
    credentials: Option<&str>,
    query_sent: Arc<Mutex<Vec<String>>>,
) {
    assert_eq!(stream.read_u8().await.unwrap(), 5);
    let count = stream.read_u8().await.unwrap();
    let methods = read_bytes(&mut stream, count.into()).await;
    if let Some(credentials) = credentials {
        if !methods.contains(&2) {
            stream.write_all(&[5, 0xff]).await.unwrap();
            return;
        }
        stream.write_all(&[5, 2]).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 1);
        let user = read_text(&mut stream).await;
        let password = read_text(&mut stream).await;
        let is_right = format!("{user}:{password}") == credentials;
        stream.write_all(&[1, u8::from(!is_right)]).await.unwrap();
        if !is_right {
            return;
        }
    } else {
        stream.write_all(&[5, 0]).await.unwrap();
    }
    let head = read_bytes(&mut stream, 4).await;
    assert_eq!(head[..3], [5, 1, 0]);
    let host = match head[3] {
        1 => Ipv4Addr::from_bits(stream.read_u32().await.unwrap()).to_string(),
        4 => Ipv6Addr::from_bits(stream.read_u128().await.unwrap()).to_string(),
        _ => format!("name {}", read_text(&mut stream).await),
    };
    let port = stream.read_u16().await.unwrap();
    query_sent.lock().unwrap().push(format!("{host} {port}"));
    if host == "192.0.2.66" {
        stream
            .write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
            .await
            .unwrap();
        return;
    }
    let mut onward = TcpStream::connect(to).await.unwrap();
    let greeting = read_bytes(&mut onward, 6).await;
    // The longest kind of address, and the greeting of the server in one piece with it.
    let mut reply = vec![5, 0, 0, 3, 9];
    reply.extend(b"localhost\0\0");
    reply.extend(greeting);
    stream.write_all(&reply).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
}

#[tokio::test]
async fn socks5_gets_addresses_and_the_next_when_one_fails() {
    let proxy = SocksProxy::start(start_echo().await, None).await;
    let dialer = dialer_by(&format!("socks5://{}", proxy.at));
    assert!(!dialer.uses_resolving_proxy("example.com", 443));
    let to = to_name(
        "example.com",
        &["192.0.2.66", "2001:db8::1", "192.0.2.3"],
        443,
    );
    for is_plain_http in [false, true] {
        let mut dialled = dialer.dial(&to, is_plain_http).await.unwrap();
        assert_eq!(dialled.address, Some(to.addresses[1]));
        assert!(dialled.whole_urls.is_none());
        expect_echo(&mut dialled.stream).await;
    }
    let once = ["192.0.2.66 443", "2001:db8::1 443"];
    assert_eq!(proxy.query_sent(), [once, once].concat());

    let err = dialer
        .dial(&to_name("example.com", &[], 443), false)
        .await
        .unwrap_err();
    assert_eq!(
        err.to_string(),
        "`example.com` has no address that this sandbox may reach"
    );
}

#[tokio::test]
async fn socks5h_gets_the_name_if_there_is_one() {
    let proxy = SocksProxy::start(start_echo().await, None).await;
    let dialer = dialer_by(&format!("socks5h://{}", proxy.at));
    assert!(dialer.uses_resolving_proxy("example.com", 443));
    let to = to_name("example.com", &["192.0.2.1"], 22);
    let mut dialled = dialer.dial(&to, false).await.unwrap();
    assert_eq!(dialled.address, None);
    expect_echo(&mut dialled.stream).await;
    let to = to_address("192.0.2.1:22".parse().unwrap());
    let dialled = dialer.dial(&to, false).await.unwrap();
    assert_eq!(dialled.address, Some(to.addresses[0]));
    assert_eq!(proxy.query_sent(), ["name example.com 22", "192.0.2.1 22"]);
}

#[tokio::test]
async fn credentials_are_checked() {
    let proxy = SocksProxy::start(start_echo().await, Some("me:hunter2")).await;
    let at = proxy.at;
    let to = to_name("example.com", &["192.0.2.1"], 22);
    let mut dialled = dialer_by(&format!("socks5h://me:{PASSWORD}@{at}"))
        .dial(&to, false)
        .await
        .unwrap();
    expect_echo(&mut dialled.stream).await;
    for (url, expected) in [
        (
            format!("socks5h://you:{PASSWORD}@{at}"),
            "rejects this user name and password",
        ),
        (
            format!("socks5h://{at}"),
            "requires a user name and a password",
        ),
    ] {
        let err = dialer_by(&url)
            .dial(&to, false)
            .await
            .unwrap_err()
            .to_string();
        assert!(err.contains(expected) && !err.contains(PASSWORD), "{err}");
    }
}

#[tokio::test]
async fn refusal_by_the_proxy_is_reported() {
    for (reply_bytes, expected) in [
        (&b""[..], "connection closed"),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "its answer is not SOCKS 5",
        ),
        (b"\x05\x02", "it requires another kind of credentials"),
        (b"\x05\xff", "it requires a user name and a password"),
        (
            b"\x05\x00\x05\x02\x00\x01\0\0\0\0\0\0",
            "its rules do not allow this",
        ),
        (
            b"\x05\x00\x05\x63\x00\x01\0\0\0\0\0\0",
            "it failed with code 99",
        ),
        (
            b"\x05\x00\x05\x00\x00\x07\0\0\0\0\0\0",
            "its answer is not SOCKS 5",
        ),
        (
            b"\x05\x00\x04\x00\x00\x01\0\0\0\0\0\0",
            "its answer is not SOCKS 5",
        ),
    ] {
        // It stays, but for the first: then the request can be sent in any case.
        let at = start_saying(reply_bytes, !reply_bytes.is_empty()).await;
        let dialer = dialer_by(&format!("socks5h://{at}"));
        let err = dialer
            .dial(&to_name("example.com", &[], 443), false)
            .await
            .unwrap_err();
        assert_eq!(err.to_string(), format!("proxy socks5h://{at}: {expected}"));
    }
}
