//! One request, one response.

use sandyard_preview::PreviewForm::{Host, Path};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::*;

#[tokio::test]
async fn a_plain_response_comes_through() {
    let (addr, head) =
        answering("HTTP/1.1 201 Made\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello").await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let answer = proxy
        .send("GET /a?b=c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
    assert!(answer.contains("\r\nx-a: 1\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    let head = head.await.unwrap();
    assert!(head.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nHost: public.example\r\n"), "{head}");
    proxy.until_quiet().await;
}

#[tokio::test]
async fn chunks_and_trailers_come_through() {
    let (addr, _) = answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n",
    )
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let answer = proxy
        .send("GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: close, te\r\n\r\n")
        .await;
    assert!(
        answer.contains("5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_response_without_length_ends_with_its_connection() {
    let (addr, _) = answering("HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let answer = proxy
        .send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.contains("until the end"), "{answer}");
    assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn head_has_a_length_and_no_body() {
    let (addr, head) = answering("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n").await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let answer = proxy
        .send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.contains("content-length: 12345"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(head.await.unwrap().starts_with("HEAD / "));
}

#[tokio::test]
async fn a_body_keeps_its_framing() {
    for (sent, seen) in [
        ("Content-Length: 3\r\n\r\nabc", "Content-Length: 3"),
        (
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked",
        ),
    ] {
        for method in ["POST", "GET"] {
            let (addr, program) = program(|mut stream| async move {
                let head = read_head(&mut stream).await;
                read_until(&mut stream, "abc").await;
                stream
                    .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                    .await
                    .unwrap();
                head
            })
            .await;
            let proxy = Proxy::start(addr, || target(Host)).await;
            let request = format!("{method} / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{sent}");
            let answer = proxy.send(&request).await;
            assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
            let head = program.await.unwrap();
            assert!(head.contains(seen), "{head}");
        }
    }
}

#[tokio::test]
async fn headers_of_one_hop_stay_on_it() {
    let (addr, head) = answering(
        "HTTP/1.1 200 OK\r\nConnection: close, X-Inner\r\nX-Inner: 1\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Authenticate: Basic\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let mut client = proxy.client().await;
    let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: X-Outer\r\nX-Outer: 1\r\nProxy-Authorization: x\r\n\
                   Upgrade: websocket\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    let answer = read_head(&mut client).await;
    for removed in ["connection", "x-inner", "keep-alive", "proxy-"] {
        assert!(!answer.contains(removed), "{answer}");
    }
    assert!(answer.contains("x-kept: 1"), "{answer}");
    let head = head.await.unwrap();
    for removed in ["X-Outer", "Proxy-", "Upgrade"] {
        assert!(!head.contains(removed), "{head}");
    }
    assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
}

#[tokio::test]
async fn below_a_path_redirects_and_cookies_stay_there() {
    let (addr, head) = answering(
        "HTTP/1.1 302 Found\r\nLocation: /login\r\nSet-Cookie: s=1; Path=/; Domain=example\r\n\
         Set-Cookie: sandyard_preview=x\r\nClear-Site-Data: \"*\"\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let proxy = Proxy::start(addr, || target(Path)).await;
    let answer = proxy
        .send(&format!(
            "GET {PREFIX}/x?y=1&sandyard_token=SECRET HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
             Cookie: a=1; sandyard_preview=SECRET\r\nX-API-Key: SECRET\r\n\r\n"
        ))
        .await;
    assert!(
        answer.contains("location: /p/abc/3000/login\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("set-cookie: s=1; Path=/p/abc/3000\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("content-security-policy: sandbox "),
        "{answer}"
    );
    assert!(!answer.contains("sandyard_preview"), "{answer}");
    assert!(!answer.contains("clear-site-data"), "{answer}");
    let head = head.await.unwrap();
    assert!(head.starts_with("GET /x?y=1 HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("X-Forwarded-Prefix: /p/abc/3000\r\n"),
        "{head}"
    );
    assert!(!head.contains("SECRET"), "{head}");
}

#[tokio::test]
async fn a_client_keeps_its_connection_over_requests() {
    let (first, _) =
        answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na").await;
    let proxy = Proxy::start(first, || target(Host)).await;
    let mut client = proxy.client().await;
    client
        .write_all(b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    read_head(&mut client).await;
    assert_eq!(client.read_u8().await.unwrap(), b'a');
    // The program is gone by now; the connection is not.
    client
        .write_all(b"GET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    let answer = read_head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn headers_for_a_proxy_replace_those_of_the_client() {
    let (addr, head) = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let request = http::Request::get("/")
        .header("host", "h")
        .header("e2b-sandbox-id", "other")
        .header("x-way", "a")
        .header("x-way", "b")
        .header("x-kept", "1")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let lines = [
        ("host", "3000-abc.far"),
        ("e2b-sandbox-id", "abc"),
        ("x-way", "1"),
    ];
    let lines = lines.map(|(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, http::HeaderValue::from_static(value))
    });
    let answer = sandyard_preview::forward(request, target(Host), move |_| async move {
        let mut dialled = connect(addr).await?;
        dialled.headers = lines.into_iter().collect();
        Ok(dialled)
    });
    assert_eq!(answer.await.unwrap().status(), 200);
    let head = head.await.unwrap();
    for line in [
        "Host: 3000-abc.far",
        "E2b-Sandbox-Id: abc",
        "X-Way: 1",
        "X-Kept: 1",
        "X-Forwarded-Host: public.example",
    ] {
        assert_eq!(
            head.matches(&format!("\r\n{line}\r\n")).count(),
            1,
            "{line}: {head}"
        );
    }
    assert_eq!(head.matches("X-Way").count(), 1, "{head}");
}
