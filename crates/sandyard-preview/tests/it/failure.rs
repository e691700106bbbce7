//! Programs that are absent, slow or hostile.

use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use sandyard_preview::PreviewForm::Host;
use sandyard_preview::{BoxError, DialError, Dialled, ForwardError, forward};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Has a program answer with these bytes and gives the error.
async fn error_of(answer: impl Into<Vec<u8>>) -> Option<ForwardError> {
    let (addr, _program) = answering(answer).await;
    let request = http::Request::new(Empty::<Bytes>::new());
    forward(request, target(Host), move |_| connect(addr))
        .await
        .err()
}

#[tokio::test]
async fn a_closed_port_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::start(addr, || target(Host)).await;
    let answer = proxy.send(GET).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("x-sandyard-problem: port_closed"),
        "{answer}"
    );
    assert!(answer.contains("\"port\":3000"), "{answer}");
    proxy.until_quiet().await;
}

#[tokio::test]
async fn connecting_has_its_time() {
    let mut target = target(Host);
    target.limits.connect = Duration::from_millis(10);
    let request = http::Request::new(Empty::<Bytes>::new());
    let never = |_| std::future::pending::<Result<Dialled<DuplexStream>, DialError>>();
    let error = forward(request, target, never).await.err();
    assert!(matches!(error, Some(ForwardError::Timeout(_))), "{error:?}");
}

#[tokio::test]
async fn headers_that_do_not_come_time_out() {
    for start in ["", "HTTP/1.1 200 OK\r\nX-Slow: "] {
        let (addr, program) = program(move |mut stream| async move {
            read_head(&mut stream).await;
            stream.write_all(start.as_bytes()).await.unwrap();
            read_all(&mut stream).await
        })
        .await;
        let hasty = || {
            let mut target = target(Host);
            target.limits.headers = Duration::from_secs(1);
            target
        };
        let proxy = Proxy::start(addr, hasty).await;
        let answer = proxy.send(GET).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        assert_eq!(program.await.unwrap(), "", "the connection is let go");
        proxy.until_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_upload_is_not_a_slow_response() {
    let (back, mut program) = duplex(1 << 10);
    let (frames, mut rx) = mpsc::channel::<Result<Frame<Bytes>, BoxError>>(1);
    let stream = futures_util::stream::poll_fn(move |cx| rx.poll_recv(cx));
    let request = http::Request::post("/")
        .body(StreamBody::new(stream))
        .unwrap();
    let target = target(Host);
    let limit = target.limits.headers;
    let exchange = tokio::spawn(forward(request, target, move |_| async move {
        Ok::<_, DialError>(Dialled::from(back))
    }));
    read_head(&mut program).await;
    for _ in 0..5 {
        tokio::time::sleep(limit * 2 / 3).await;
        frames
            .send(Ok(Frame::data(Bytes::from_static(b"x"))))
            .await
            .unwrap();
        read_until(&mut program, "x\r\n").await;
    }
    tokio::time::sleep(limit * 2 / 3).await;
    program
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await
        .unwrap();
    let response = exchange.await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_client_whose_body_breaks_is_gone() {
    let (back, mut program) = duplex(1 << 10);
    let broken = futures_util::stream::iter([
        Ok(Frame::data(Bytes::from_static(b"x"))),
        Err::<_, BoxError>("broken".into()),
    ]);
    let request = http::Request::post("/")
        .body(StreamBody::new(broken))
        .unwrap();
    let exchange = forward(request, target(Host), move |_| async move {
        Ok::<_, DialError>(Dialled::from(back))
    });
    let (result, _) = tokio::join!(exchange, read_all(&mut program));
    assert!(matches!(result, Err(ForwardError::ClientGone)));
}

#[tokio::test]
async fn what_is_not_http_is_a_bad_response() {
    let huge = "x".repeat(100 << 10);
    let many = "X-A: 1\r\n".repeat(1000);
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10_000);
    for answer in [
        String::new(),
        "HTTP/1.1 200".to_owned(),
        "SSH-2.0-OpenSSH_9.9\r\n".to_owned(),
        "\x16\x03\x01\x02".to_owned(),
        "HTTP/2 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 99 Low\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nX-Huge: {huge}\r\n\r\n"),
        format!("HTTP/1.1 200 {huge}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        interim,
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            .to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx".to_owned(),
        "HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX-A : 1\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX-A: 1\r\n folded: 2\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX-A: 1\rSet-Cookie: x=1\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX-A: \0\r\n\r\n".to_owned(),
    ] {
        let shown: String = answer.chars().take(60).collect();
        let error = error_of(answer).await;
        assert!(
            matches!(error, Some(ForwardError::BadResponse { .. })),
            "{shown:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn bytes_behind_a_response_are_not_another_one() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nSet-Cookie: evil=1\r\n\r\n";
    let (addr, _) = answering(answer).await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let answer = proxy.send(GET).await;
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn a_request_with_two_lengths_reaches_the_program_with_one() {
    // The server takes the length off and closes the connection behind it, as RFC 9112 6.1 allows.
    let (addr, program) = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n\
                   0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    let answer = proxy.send(request).await;
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    let head = program.await.unwrap();
    assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
    assert!(!head.contains("Content-Length"), "{head}");
}

#[tokio::test]
async fn a_length_without_a_body_does_not_break_the_response() {
    for status in ["204 No Content", "205 Reset Content", "304 Not Modified"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 10\r\n\r\n0123456789");
        let (addr, _program) = answering(answer).await;
        let proxy = Proxy::start(addr, || target(Host)).await;
        let answer = proxy.send(GET).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{answer}"
        );
        if !status.starts_with("205") {
            assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        }
        proxy.until_quiet().await;
    }
}

#[tokio::test]
async fn a_body_is_read_to_its_end_before_the_guard_goes() {
    let (addr, _) = answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
    let (guard, held) = std::sync::mpsc::channel::<()>();
    let mut target = target(Host);
    target.guard = Some(Box::new(guard));
    let request = http::Request::new(Empty::<Bytes>::new());
    let response = forward(request, target, move |_| connect(addr))
        .await
        .unwrap();
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "hello");
    assert_eq!(held.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty));
    drop(body);
    assert_eq!(
        held.try_recv(),
        Err(std::sync::mpsc::TryRecvError::Disconnected)
    );
}

#[tokio::test]
async fn a_response_may_come_before_the_request_has_ended() {
    let (back, mut program) = duplex(1 << 10);
    let (frames, mut rx) = mpsc::channel::<Result<Frame<Bytes>, BoxError>>(1);
    let stream = futures_util::stream::poll_fn(move |cx| rx.poll_recv(cx));
    let request = http::Request::post("/")
        .body(StreamBody::new(stream))
        .unwrap();
    let exchange = tokio::spawn(forward(request, target(Host), move |_| async move {
        Ok::<_, DialError>(Dialled::from(back))
    }));
    read_head(&mut program).await;
    program
        .write_all(b"HTTP/1.1 200 OK\r\n\r\na")
        .await
        .unwrap();
    let mut body = exchange.await.unwrap().unwrap().into_body();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "a"
    );
    frames
        .send(Ok(Frame::data(Bytes::from_static(b"later"))))
        .await
        .unwrap();
    read_until(&mut program, "later\r\n").await;
    program.write_all(b"b").await.unwrap();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "b"
    );
    drop(body);
    // Without the body nobody wants the connection.
    let _ = program.read_to_end(&mut Vec::new()).await;
    assert!(frames.send(Ok(Frame::data(Bytes::new()))).await.is_err());
}
