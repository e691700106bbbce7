//! Data of connections over a link.

use std::net::Ipv4Addr;

use futures_util::future::join_all;
use sandyard_agent_client::AgentClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::env::{TestEnv, sh};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_at_once_do_not_mix() {
    let env = TestEnv::new();
    let client = env.client();
    let runs = (0..60).map(|number| {
        let client = client.clone();
        async move {
            let line = format!("i=0; while [ $i -lt 500 ]; do echo {number}; i=$((i+1)); done");
            assert_eq!(sh(&client, &line).await, format!("{number}\n").repeat(500));
        }
    });
    join_all(runs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_mebibytes_arrive_as_they_were_sent() {
    let env = TestEnv::new();
    let client = AgentClient::patient(env.endpoint());
    let path = env.folder.path().join("file").display().to_string();
    let bytes: Vec<u8> = (0..100_u32 << 18).flat_map(u32::to_le_bytes).collect();
    client
        .write_file(&path, bytes.clone())
        .await
        .expect("write");
    let read = client.read_to_vec(&path, bytes.len()).await.expect("read");
    assert!(read == bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_direction_ends_before_the_other() {
    let env = TestEnv::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        let mut received = Vec::new();
        socket.read_to_end(&mut received).await.expect("to the end");
        received.reverse();
        socket.write_all(&received).await.expect("answer");
    });
    let mut stream = env.client().dial(port).await.expect("dial").stream;
    let question: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    stream.write_all(&question).await.expect("ask");
    stream.shutdown().await.expect("end");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("to the end");
    assert!(answer.iter().rev().eq(question.iter()));
    server.await.expect("served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unread_stream_does_not_block_others() {
    let env = TestEnv::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let flood = tokio::spawn(async move {
        let piece = vec![0; 1 << 16];
        let (mut socket, _) = listener.accept().await.expect("a connection");
        while socket.write_all(&piece).await.is_ok() {}
    });
    let unread = env.client().dial(port).await.expect("dial").stream;
    for _ in 0..20 {
        assert_eq!(sh(&env.client(), "echo 1").await, "1\n");
    }
    drop(unread);
    // The other end sees that it was closed.
    flood.await.expect("it ends");
}
