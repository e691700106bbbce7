//! Bodies that are long, slow, or cut short.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandyard_preview::PreviewForm::Host;
use sandyard_preview::{DialError, Dialled, forward};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::oneshot;

use crate::support::*;

const LONG: usize = 100 << 20;
/// What may be under way between the two ends: pipes, buffers of both connections.
const SLACK: usize = 2 << 20;

#[tokio::test]
async fn an_event_arrives_before_the_end() {
    let (seen, go_on) = oneshot::channel::<()>();
    let (addr, _) = program(|mut stream| async move {
        read_head(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(b"9\r\ndata: 1\n\n\r\n").await.unwrap();
        // Nothing more before the client has it.
        go_on.await.unwrap();
        stream.write_all(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n").await.unwrap();
    })
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let mut client = proxy.client().await;
    let request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    client.write_all(request).await.unwrap();
    read_until(&mut client, "data: 1\n\n").await;
    assert_eq!(proxy.live(), 1, "it counts as activity");
    seen.send(()).unwrap();
    read_until(&mut client, "data: 2\n\n").await;
    proxy.until_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_megabytes_stream_in_both_directions() {
    let (addr, program) = program(|stream| async move {
        let (mut read, mut write) = stream.into_split();
        read_head(&mut read).await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n");
        write.write_all(head.as_bytes()).await.unwrap();
        // Both at once: what arrives goes straight back.
        tokio::io::copy(&mut read.take(LONG as u64), &mut write)
            .await
            .unwrap()
    })
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let (mut read, mut write) = proxy.client().await.into_split();
    let sending = tokio::spawn(async move {
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {LONG}\r\n\r\n");
        write.write_all(head.as_bytes()).await.unwrap();
        let chunk: Vec<u8> = (0..1 << 20).map(|index| (index % 251) as u8).collect();
        for _ in 0..LONG / chunk.len() {
            write.write_all(&chunk).await.unwrap();
        }
        write
    });
    read_head(&mut read).await;
    let mut chunk = vec![0; 1 << 20];
    for _ in 0..LONG / chunk.len() {
        read.read_exact(&mut chunk).await.unwrap();
        let intact = chunk
            .iter()
            .enumerate()
            .all(|(index, byte)| *byte == (index % 251) as u8);
        assert!(intact);
    }
    sending.await.unwrap();
    assert_eq!(program.await.unwrap(), LONG as u64);
}

/// The proxy between two pipes in memory, on one thread: nothing moves but what the tasks move.
fn piped() -> (DuplexStream, DuplexStream) {
    let (client, front) = duplex(64 << 10);
    let (back, program) = duplex(64 << 10);
    let back = std::sync::Mutex::new(Some(back));
    tokio::spawn(serve(front, move |request| {
        let back = back.lock().unwrap().take().unwrap();
        forward(request, target(Host), move |_| async move {
            Ok::<_, DialError>(Dialled::from(back))
        })
    }));
    (client, program)
}

/// Lets every other task run until it can go no further.
async fn let_run() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_slow_client_holds_the_program_back() {
    let (mut client, mut program) = piped();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    tokio::spawn(async move {
        read_head(&mut program).await;
        program.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let chunk = vec![0; 16 << 10];
        while program.write_all(&chunk).await.is_ok() {
            counter.fetch_add(chunk.len(), Ordering::Relaxed);
        }
    });
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    read_head(&mut client).await;
    let mut received = 0;
    let mut chunk = vec![0; 256 << 10];
    for _ in 0..100 {
        client.read_exact(&mut chunk).await.unwrap();
        received += chunk.len();
        let_run().await;
        let ahead = sent.load(Ordering::Relaxed).saturating_sub(received);
        assert!(ahead < SLACK, "{ahead} bytes are held");
    }
}

#[tokio::test]
async fn a_slow_program_holds_the_client_back() {
    let (mut client, mut program) = piped();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    tokio::spawn(async move {
        let head = format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {LONG}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let chunk = vec![0; 16 << 10];
        while client.write_all(&chunk).await.is_ok() {
            counter.fetch_add(chunk.len(), Ordering::Relaxed);
        }
    });
    read_head(&mut program).await;
    let mut received = 0;
    let mut chunk = vec![0; 256 << 10];
    for _ in 0..100 {
        program.read_exact(&mut chunk).await.unwrap();
        received += chunk.len();
        let_run().await;
        let ahead = sent.load(Ordering::Relaxed).saturating_sub(received);
        assert!(ahead < SLACK, "{ahead} bytes are held");
    }
}

#[tokio::test]
async fn a_program_that_dies_midway_cuts_the_response() {
    for head in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhe");
        let (addr, _) = answering(answer).await;
        let proxy = Proxy::start(addr, || target(Host)).await;
        let answer = proxy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
        proxy.until_quiet().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along() {
    let (addr, program) = program(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nx").await.unwrap();
        read_all(&mut stream).await
    })
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let mut client = proxy.client().await;
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    read_until(&mut client, "x").await;
    drop(client);
    assert_eq!(program.await.unwrap(), "");
    proxy.until_quiet().await;
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_takes_its_request_along() {
    let (arrived, has_arrived) = oneshot::channel::<()>();
    let (addr, program) = program(|mut stream| async move {
        read_head(&mut stream).await;
        arrived.send(()).unwrap();
        read_all(&mut stream).await
    })
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let mut client = proxy.client().await;
    let request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf";
    client.write_all(request).await.unwrap();
    has_arrived.await.unwrap();
    drop(client);
    assert!("half".starts_with(&program.await.unwrap()));
    proxy.until_quiet().await;
}

const EXPECTING: &[u8] =
    b"PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_body_is_asked_for_when_the_program_wants_it() {
    let (addr, program) = program(|mut stream| async move {
        let head = read_head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .await
            .unwrap();
        read_until(&mut stream, "body").await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await
            .unwrap();
        head
    })
    .await;
    let patient = || {
        let mut target = target(Host);
        target.limits.expect = Duration::from_secs(3600);
        target
    };
    let proxy = Proxy::start(addr, patient).await;
    let mut client = proxy.client().await;
    client.write_all(EXPECTING).await.unwrap();
    assert_eq!(
        read_head(&mut client).await,
        "HTTP/1.1 100 Continue\r\n\r\n"
    );
    client.write_all(b"body").await.unwrap();
    assert!(read_all(&mut client).await.ends_with("ok"));
    assert!(program.await.unwrap().contains("Expect: 100-continue"));
}

#[tokio::test]
async fn a_body_that_the_program_refuses_is_not_uploaded() {
    let (addr, _) = answering("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
    let patient = || {
        let mut target = target(Host);
        target.limits.expect = Duration::from_secs(3600);
        target
    };
    let proxy = Proxy::start(addr, patient).await;
    let mut client = proxy.client().await;
    client.write_all(EXPECTING).await.unwrap();
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_program_that_knows_no_expectations_gets_the_body_all_the_same() {
    let (addr, _) = program(|mut stream| async move {
        read_head(&mut stream).await;
        read_until(&mut stream, "body").await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await
            .unwrap();
    })
    .await;
    let hasty = || {
        let mut target = target(Host);
        target.limits.expect = Duration::from_millis(10);
        target
    };
    let proxy = Proxy::start(addr, hasty).await;
    let mut client = proxy.client().await;
    client.write_all(EXPECTING).await.unwrap();
    assert_eq!(
        read_head(&mut client).await,
        "HTTP/1.1 100 Continue\r\n\r\n"
    );
    client.write_all(b"body").await.unwrap();
    assert!(read_all(&mut client).await.ends_with("ok"));
}
