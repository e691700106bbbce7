//! Files and ports, against good and bad agents.

use sandyard_agent_client::wire::Code;
use sandyard_agent_client::{ClientError, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Server, kind, read_head, read_request, reply};

const UPLOAD_REPLY: &str = r#"[{"path":"/home/user/a b","name":"a b","type":"file"}]"#;

#[tokio::test]
async fn a_file_is_read_whole_and_its_size_known() {
    let server = Server::replying(reply("200 OK", "hello"));
    let file = server.client().read_file("/x").await.expect("a file");
    assert_eq!(file.size(), Some(5));
    assert_eq!(
        server.client().read_to_vec("/x", 5).await.expect("a file"),
        b"hello"
    );
}

#[tokio::test]
async fn a_file_over_the_callers_limit_is_refused() {
    let server = Server::replying(reply("200 OK", "hello"));
    assert_eq!(
        kind(server.client().read_to_vec("/x", 4).await),
        "too large"
    );
    let server = Server::endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x");
    assert_eq!(
        kind(server.client().read_to_vec("/x", 100_000).await),
        "too large"
    );
}

#[tokio::test]
async fn a_file_cut_short_is_closed() {
    let server = Server::replying("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello");
    assert_eq!(
        kind(server.client().read_to_vec("/x", 1000).await),
        "closed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_that_stalls_is_a_timeout() {
    let server = Server::stalling_after("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello");
    assert_eq!(
        kind(server.client().read_to_vec("/x", 1000).await),
        "timeout"
    );
}

#[tokio::test]
async fn content_encoded_without_being_asked_is_refused() {
    let server = Server::replying("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nxxxx");
    assert_eq!(kind(server.client().read_file("/x").await), "protocol");
}

#[tokio::test]
async fn a_write_carries_path_user_and_bytes() {
    let server = Server::new(|mut stream| async move {
        let (head, body) = read_request(&mut stream).await;
        assert!(
            head.starts_with("POST /files?path=/home/user/a%20b&username=root HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(head.contains("authorization: Basic cm9vdDo=\r\n"), "{head}");
        assert_eq!(body, b"content");
        stream
            .write_all(&reply("200 OK", UPLOAD_REPLY))
            .await
            .expect("a client");
    });
    let client = server.client().as_user("root");
    let written = client
        .write_file("/home/user/a b", "content")
        .await
        .expect("a reply");
    assert_eq!(written.name, "a b");
}

#[tokio::test]
async fn a_reader_is_streamed_to_its_end() {
    let server = Server::new(|mut stream| async move {
        let head = read_head(&mut stream).await;
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            stream.read_buf(&mut body).await.expect("more");
        }
        assert!(body.iter().filter(|&&byte| byte == b'z').count() == 1_000_000);
        stream
            .write_all(&reply("200 OK", UPLOAD_REPLY))
            .await
            .expect("a client");
    });
    let reader = std::io::Cursor::new(vec![b'z'; 1_000_000]);
    server
        .client()
        .write_file_from("/x", reader)
        .await
        .expect("a reply");
}

#[tokio::test]
async fn an_agent_that_refuses_a_write_is_heard() {
    let server = Server::new(|mut stream| async move {
        read_request(&mut stream).await;
        let body = reply(
            "507 Insufficient Storage",
            r#"{"code":507,"message":"disk is full"}"#,
        );
        stream.write_all(&body).await.expect("a client");
    });
    let error = server
        .client()
        .write_file("/x", "content")
        .await
        .expect_err("no room");
    assert_eq!(error.code(), Some(Code::ResourceExhausted));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_reading_a_write_is_a_timeout() {
    let server = Server::stalling_after("");
    let result = server.client().write_file("/x", vec![0; 8 << 20]).await;
    assert_eq!(kind(result), "timeout");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_its_time_is_no_timeout() {
    let server = Server::new(|mut stream| async move {
        read_head(&mut stream).await;
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            stream.read_buf(&mut body).await.expect("more");
        }
        stream
            .write_all(&reply("200 OK", UPLOAD_REPLY))
            .await
            .expect("a client");
    });
    let (mut source, reader) = tokio::io::duplex(64);
    let feed = tokio::spawn(async move {
        for _ in 0..3 {
            tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
            source.write_all(b"piece").await.expect("a reader");
        }
    });
    server
        .client()
        .write_file_from("/x", reader)
        .await
        .expect("a reply");
    feed.await.expect("all was read");
}

#[tokio::test]
async fn a_reader_that_fails_fails_the_write() {
    struct Broken;
    impl tokio::io::AsyncRead for Broken {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::Error::other("bad disk")))
        }
    }
    let server = Server::stalling_after("");
    match server.client().write_file_from("/x", Broken).await {
        Err(ClientError::Io { source, .. }) => assert_eq!(source.to_string(), "bad disk"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_dialled_port_carries_bytes_in_both_directions() {
    let server = Server::new(|mut stream| async move {
        let head = read_head(&mut stream).await;
        assert!(
            head.starts_with("GET /dial?port=8080 HTTP/1.1\r\n"),
            "{head}"
        );
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: sandyard-dial\r\n\r\nhi";
        stream.write_all(head.as_bytes()).await.expect("a client");
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.expect("an echo");
    });
    let mut port = server.client().dial(8080).await.expect("a port").stream;
    port.write_all(b"echo").await.expect("open");
    port.shutdown().await.expect("open");
    let mut all = String::new();
    port.read_to_string(&mut all).await.expect("open");
    assert_eq!(all, "hiecho");
}

#[tokio::test]
async fn a_port_without_a_listener_is_unavailable() {
    let server = Server::replying(reply(
        "502 Bad Gateway",
        r#"{"code":502,"message":"port is not open"}"#,
    ));
    let error = server.client().dial(1).await.expect_err("closed");
    assert_eq!(error.code(), Some(Code::Unavailable));
    let server = Server::replying(reply("200 OK", "fine"));
    assert_eq!(kind(server.client().dial(1).await), "protocol");
}

#[tokio::test]
async fn limits_of_the_caller_replace_the_default_ones() {
    let server = Server::replying(reply("200 OK", r#"{"processes":[]}"#));
    let client = server.client_with(Limits {
        max_body_len: 3,
        ..Limits::default()
    });
    assert_eq!(kind(client.list().await), "too large");
}
