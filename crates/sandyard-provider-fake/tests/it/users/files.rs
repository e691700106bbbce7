//! Files and watchers.

use sandyard_agent_client::wire::filesystem::WatchRequest;
use sandyard_agent_client::wire::{EventType, FileType};
use sandyard_provider::prelude::*;
use sandyard_provider::{AgentAddress, InstanceSpec};

use super::{agent, agent_of, fake, run_line};
use crate::common::spec;

#[tokio::test]
async fn files_are_written_read_listed_moved_and_removed() {
    let (_, agent) = agent(&fake()).await;
    let written = agent.write_file("a/b.txt", "hello").await.expect("write");
    assert_eq!(written.path, "/home/user/a/b.txt");
    assert_eq!(
        agent.read_to_vec("~/a/b.txt", 100).await.expect("read"),
        b"hello"
    );
    let entry = agent.stat("a/b.txt").await.expect("stat");
    assert_eq!(
        (entry.size, entry.owner.as_str(), entry.r#type),
        (5, "user", FileType::File)
    );
    assert_eq!(entry.permissions, "-rw-r--r--");
    agent.make_dir("a/c").await.expect("make");
    agent.make_dir("a/c").await.expect_err("it is there");
    let names = |entries: Vec<sandyard_agent_client::wire::EntryInfo>| -> Vec<String> {
        entries.into_iter().map(|entry| entry.path).collect()
    };
    let shallow = agent.list_dir("/home/user", 1).await.expect("list");
    assert_eq!(names(shallow), ["/home/user/a"]);
    let deep = agent.list_dir("", 2).await.expect("list");
    assert_eq!(
        names(deep),
        ["/home/user/a", "/home/user/a/b.txt", "/home/user/a/c"]
    );
    agent.rename("a/b.txt", "x/y").await.expect("move");
    assert!(agent.stat("a/b.txt").await.is_err());
    agent.remove("x").await.expect("remove");
    agent.remove("x").await.expect("twice");
    assert!(agent.read_to_vec("x/y", 100).await.is_err());
    agent.write_file("a", "x").await.expect_err("a folder");
    agent.remove("/").await.expect_err("the root");
}

#[tokio::test]
async fn a_full_disk_refuses_writes() {
    let fake = fake();
    let mut small = spec("one");
    small.limits.disk_bytes = 16 << 20;
    let id = fake.create(&small).await.expect("create").id;
    let agent = agent_of(&fake, &id).await;
    let error = agent
        .write_file("big", vec![0; 17 << 20])
        .await
        .expect_err("too much");
    assert!(error.to_string().contains("no space left"), "{error}");
    agent
        .write_file("small", vec![0; 1 << 20])
        .await
        .expect("fits");
    let used = fake.usage(&id).await.expect("usage").disk_bytes;
    assert!(used.is_some_and(|used| used > 1 << 20), "{used:?}");
}

#[tokio::test]
async fn watchers_receive_the_changes() {
    let (_, agent) = agent(&fake()).await;
    let request = WatchRequest {
        path: "/tmp".to_owned(),
        recursive: true,
        ..WatchRequest::default()
    };
    let mut watch = agent.watch(&request).await.expect("watch");
    agent.write_file("/tmp/d/f", "x").await.expect("write");
    agent.remove("/tmp/d").await.expect("remove");
    run_line(&agent, "echo x > ~/outside").await;
    let mut events = Vec::new();
    while events.len() < 4 {
        let event = watch.next().await.expect("goes on").expect("fine");
        events.push((event.name, event.r#type));
    }
    let event = |name: &str, what| (name.to_owned(), what);
    assert_eq!(
        events,
        [
            event("d", EventType::Create),
            event("d/f", EventType::Create),
            event("d/f", EventType::Write),
            event("d", EventType::Remove),
        ]
    );
}

#[tokio::test]
async fn snapshots_and_forks_have_the_files_and_a_seed_makes_them_the_same() {
    let config = sandyard_provider_fake::FakeConfig {
        seed: Some(7),
        ..Default::default()
    };
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let fake = sandyard_provider_fake::FakeProvider::for_users(&config).expect("fine");
        let (id, agent) = agent(&fake).await;
        run_line(&agent, "echo kept > file").await;
        fake.pause(&id).await.expect("pause");
        fake.snapshot(&id, "kept").await.expect("snapshot");
        let from = InstanceSpec {
            template: "kept".to_owned(),
            ..spec("two")
        };
        let made = fake.create(&from).await.expect("create");
        assert_eq!(fake.diff(&made.id).await.expect("diff"), []);
        let copy = agent_of(&fake, &made.id).await;
        assert_eq!(run_line(&copy, "cat file").await.0, "kept\n");
        let forked = fake.fork(&id, &spec("three")).await.expect("fork");
        let fork = agent_of(&fake, &forked.id).await;
        assert_eq!(
            run_line(&fork, "cat file; echo more >> file").await.0,
            "kept\n"
        );
        fake.resume(&id).await.expect("resume");
        assert_eq!(run_line(&agent, "cat file").await.0, "kept\n");
        let modified = copy.stat("file").await.expect("stat").modified_time;
        outcomes.push((made.id, made.created_ms, modified));
    }
    assert_eq!(outcomes[0], outcomes[1]);
}

#[tokio::test]
async fn requests_to_a_paused_instance_wait_until_it_is_resumed() {
    let fake = fake();
    let (id, agent) = agent(&fake).await;
    agent.health().await.expect("there");
    fake.pause(&id).await.expect("pause");
    let address = AgentAddress {
        id: id.clone(),
        access_token: "token".to_owned(),
    };
    let patient = fake.agent(&address).await.expect("an agent");
    let request = tokio::spawn(async move { patient.health().await });
    tokio::task::yield_now().await;
    assert!(!request.is_finished());
    fake.resume(&id).await.expect("resume");
    request.await.expect("ends").expect("answers");
}
