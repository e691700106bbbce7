//! Files, watches, ports and the host's calls of the real agent.

use std::time::Duration;

use sandyard_agent_client::wire::filesystem::{EventType, FileType, WatchRequest};
use sandyard_agent_client::wire::host::InitRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::agent::Agent;

#[tokio::test]
async fn a_file_is_written_found_renamed_read_and_removed() {
    let agent = Agent::start().await;
    let (client, old, new) = (
        &agent.client,
        agent.path("sub/a ü.txt"),
        agent.path("sub/b"),
    );
    let written = client.write_file(&old, "content").await.expect("written");
    assert_eq!(
        (written.path.as_str(), written.name.as_str()),
        (old.as_str(), "a ü.txt")
    );
    let entry = client.stat(&old).await.expect("an entry");
    assert_eq!(
        (entry.size, entry.r#type, entry.mode),
        (7, FileType::File, 0o644)
    );
    assert_eq!(client.rename(&old, &new).await.expect("renamed").path, new);
    assert!(client.stat(&old).await.expect_err("gone").is_not_found());
    assert_eq!(
        client.read_to_vec(&new, 100).await.expect("a file"),
        b"content"
    );
    client.make_dir(&agent.path("sub/dir")).await.expect("made");
    let entries = client
        .list_dir(&agent.path("sub"), 1)
        .await
        .expect("a list");
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "dir"]);
    client.remove(&new).await.expect("removed");
    client.remove(&new).await.expect("removed already");
    assert!(
        client
            .read_file(&new)
            .await
            .expect_err("gone")
            .is_not_found()
    );
}

#[tokio::test]
async fn a_large_file_survives_upload_and_download() {
    let agent = Agent::start().await;
    let content: Vec<u8> = (0..20_000_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let path = agent.path("large");
    let reader = std::io::Cursor::new(content.clone());
    agent
        .client
        .write_file_from(&path, reader)
        .await
        .expect("written");
    let file = agent.client.read_file(&path).await.expect("a file");
    assert_eq!(file.size(), Some(20_000_000));
    drop(file);
    let back = agent
        .client
        .read_to_vec(&path, 20_000_000)
        .await
        .expect("a file");
    assert!(back == content, "the bytes are the same");
}

#[tokio::test]
async fn a_watch_sees_a_file_appear() {
    let agent = Agent::start().await;
    let request = WatchRequest {
        path: agent.path(""),
        ..WatchRequest::default()
    };
    let mut watch = agent.client.watch(&request).await.expect("a watch");
    std::fs::write(agent.path("new"), "x").expect("written");
    let event = watch.next().await.expect("not over").expect("no error");
    assert_eq!(
        (event.name.as_str(), event.r#type),
        ("new", EventType::Create)
    );
}

#[tokio::test]
async fn a_port_inside_is_reached_and_a_closed_one_is_not() {
    let agent = Agent::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("the agent");
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.expect("an echo");
    });
    let mut dialled = agent.client.dial(port).await.expect("open").stream;
    dialled.write_all(b"through").await.expect("open");
    dialled.shutdown().await.expect("open");
    let mut back = String::new();
    dialled.read_to_string(&mut back).await.expect("open");
    assert_eq!(back, "through");
    echo.await.expect("no panic");
    // A program that another test is about to start has the listener, too, for a moment.
    let closed = async { while agent.client.dial(port).await.is_ok() {} };
    let closed = tokio::time::timeout(Duration::from_secs(60), closed).await;
    closed.expect("nobody listens any more");
}

#[tokio::test]
async fn the_host_sets_variables_and_sees_activity() {
    let agent = Agent::start().await;
    let init = InitRequest {
        env_vars: Some([("FROM_HOST".into(), "1".into())].into()),
        ..InitRequest::default()
    };
    agent.client.init(&init).await.expect("initialised");
    let envs = agent.client.envs().await.expect("variables");
    assert_eq!(envs.get("FROM_HOST").map(String::as_str), Some("1"));
    let activity = agent.client.activity().await.expect("activity");
    assert_eq!(activity.processes, 0);
    let metrics = agent.client.metrics().await.expect("metrics");
    assert!(
        metrics.cpu_count > 0 && metrics.mem_total > 0,
        "{metrics:?}"
    );
}
