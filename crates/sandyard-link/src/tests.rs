//! Both ends of a link in one process.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::{Inbound, LinkStream, Mux, Side};

/// Two ends with a buffer of this many bytes between them.
fn linked(buffer: usize) -> ((Mux, Inbound), (Mux, Inbound)) {
    let (server, container) = tokio::io::duplex(buffer);
    (
        Mux::start(server, Side::Server),
        Mux::start(container, Side::Container),
    )
}

async fn connected(from: &Mux, to: &mut Inbound) -> (LinkStream, LinkStream) {
    let local_end = from.open(b"x").await.expect("a connection");
    let mut remote_end = to.next().await.expect("the other end");
    assert_eq!(remote_end.read_u8().await.expect("its head"), b'x');
    (local_end, remote_end)
}

#[tokio::test]
async fn either_side_opens_and_each_direction_ends_separately() {
    let ((server, mut to_server), (container, mut to_container)) = linked(1 << 16);
    for _ in 0..2 {
        let (mut one, mut other) = connected(&server, &mut to_container).await;
        one.write_all(b"question").await.expect("ask");
        one.shutdown().await.expect("end");
        let mut received = String::new();
        other.read_to_string(&mut received).await.expect("the end");
        assert_eq!(received, "question");
        other.write_all(b"answer").await.expect("answer");
        other.shutdown().await.expect("end");
        drop(other);
        received.clear();
        one.read_to_string(&mut received).await.expect("the end");
        assert_eq!(received, "answer");
        one.write_all(b"more")
            .await
            .expect_err("nothing after the end");
    }
    let (mut one, mut other) = connected(&container, &mut to_server).await;
    one.write_u8(1).await.expect("write");
    one.flush().await.expect("flush");
    assert_eq!(other.read_u8().await.expect("read"), 1);
}

#[tokio::test]
async fn what_is_broken_off_does_not_look_like_an_end() {
    let ((server, _), (container, mut to_container)) = linked(1 << 16);
    for has_ended in [false, true] {
        let (mut one, mut other) = connected(&server, &mut to_container).await;
        if has_ended {
            // Nor when one direction has ended in order.
            one.shutdown().await.expect("end");
        }
        other.write_all(b"half").await.expect("write");
        other.flush().await.expect("flush");
        drop(other);
        let mut received = Vec::new();
        one.read_to_end(&mut received)
            .await
            .expect_err("broken off");
        assert_eq!(received, b"half");
    }
    let (mut one, _other) = connected(&server, &mut to_container).await;
    one.shutdown().await.expect("end");
    container.close();
    let mut received = Vec::new();
    one.read_to_end(&mut received)
        .await
        .expect_err("the link is gone");
    server.ended().await;
    server.open(b"").await.expect_err("no more");
}

#[tokio::test]
async fn bytes_arrive_in_order_with_buffers_of_any_size() {
    for buffer_bytes in [1, 7, 1000, 1 << 20] {
        let ((server, _a), (_container, mut to_container)) = linked(buffer_bytes);
        let (mut one, mut other) = connected(&server, &mut to_container).await;
        let sent: Vec<u8> = (0..100_000_u32)
            .map(|number| (number % 251) as u8)
            .collect();
        let copy = sent.clone();
        let writing = tokio::spawn(async move {
            one.write_all(&copy).await.expect("write");
            one.shutdown().await.expect("end");
            one
        });
        let mut received = Vec::new();
        other.read_to_end(&mut received).await.expect("read");
        assert!(received == sent, "buffers of {buffer_bytes} bytes");
        drop(writing.await.expect("written"));
    }
}

#[tokio::test]
async fn opening_waits_while_there_are_too_many_and_goes_on_when_one_ends() {
    let ((server, _a), (_container, mut to_container)) = linked(1 << 16);
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(carried) = to_container.next().await {
            all.push(carried);
        }
    });
    let mut held = Vec::new();
    while let Ok(carried) = server.try_open(b"x").await {
        held.push(carried);
    }
    assert_eq!(held.len(), 200);
    let waiting = server.clone();
    let waiting = tokio::spawn(async move { waiting.open(b"x").await.map(drop) });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    held.pop();
    waiting.await.expect("no panic").expect("room");
    server.close();
    reading.await.expect("it ends");
}

#[tokio::test]
async fn connections_opened_and_dropped_while_nothing_can_be_sent_do_not_end_the_link() {
    let (server, container): (DuplexStream, _) = tokio::io::duplex(64);
    let (server, _inbound) = Mux::start(server, Side::Server);
    // Nobody reads at the other end, so nothing can be sent.
    for _ in 0..1000 {
        let opening = tokio::time::timeout(Duration::from_millis(1), server.open(b"x"));
        drop(opening.await);
    }
    assert!(!server.has_ended());
    let (_container, mut to_container) = Mux::start(container, Side::Container);
    let opened = tokio::spawn(async move { server.open(b"last").await.map(|open| (open, server)) });
    loop {
        let mut carried = to_container.next().await.expect("a connection");
        let mut head = [0; 4];
        if carried.read_exact(&mut head).await.is_ok() && &head == b"last" {
            break;
        }
    }
    assert!(opened.await.expect("no panic").is_ok());
}
