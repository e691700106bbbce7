//! Bodies in both directions.

use tokio::io::AsyncReadExt;

use crate::script::{Act, Script};

#[tokio::test]
async fn an_upload_is_sent_as_it_is_read() {
    let acts = vec![Act::json("200 OK", "{}"), Act::json("200 OK", "{}")];
    let server = Script::play(acts).await;
    let client = server.client.with_file_user("root");
    client
        .upload("abc", "/a b&c", &b"content"[..], Some(7))
        .await
        .unwrap();
    server
        .client
        .upload("abc", "x", &b"content"[..], None)
        .await
        .unwrap();
    let requests = server.requests();
    assert!(requests[0].starts_with("PUT /sandboxes/abc/files?path=%2Fa+b%26c&user=root "));
    assert!(requests[0].contains("content-length: 7\r\n") && requests[0].ends_with("content"));
    assert!(requests[1].contains("transfer-encoding: chunked"));
}

#[tokio::test]
async fn truncated_download_is_an_error() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    let acts = vec![Act::Answer(half.to_owned()), Act::Answer(half.to_owned())];
    let server = Script::play(acts).await;
    assert!(server.client.read("abc", "x", 1000).await.is_err());
    let download = server.client.download("abc", "x").await.unwrap();
    assert_eq!(download.size_bytes(), Some(100));
    let mut content = Vec::new();
    let read = download.into_reader().read_to_end(&mut content).await;
    assert!(read.is_err(), "{content:?}");
}

#[tokio::test]
async fn file_larger_than_the_limit_is_rejected() {
    let large = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789";
    let acts = vec![Act::Answer(large.to_owned()), Act::Answer(large.to_owned())];
    let server = Script::play(acts).await;
    assert!(server.client.read("abc", "x", 8).await.is_err());
    assert_eq!(
        server.client.read("abc", "x", 9).await.unwrap(),
        b"123456789"
    );
}
