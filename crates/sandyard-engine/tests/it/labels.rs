//! Labels: what a maker writes on a sandbox, to find it again.

use std::collections::BTreeMap;

use sandyard_engine::{ErrorKind, ForkSpec, SandboxSpec};

use crate::test_env::{TestEnv, ready, small};

fn labels(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("sandyard.test".to_owned(), text.to_owned())])
}

fn labelled(text: &str) -> SandboxSpec {
    SandboxSpec {
        labels: labels(text),
        ..small()
    }
}

#[tokio::test]
async fn labels_stay_through_a_whole_life_and_another_launcher() {
    let env = TestEnv::new().await;
    let made = env.engine.create(&labelled("one")).await.expect("create");
    assert_eq!(made.labels, labels("one"));
    let id = made.id;
    let paused = env.engine.pause(&id).await.expect("pause");
    assert_eq!(paused.labels, labels("one"));
    env.engine.resume(&id).await.expect("resume");
    env.engine.stop(&id).await.expect("stop");
    env.kill_launcher().await;
    let started = env.engine.start(&id).await.expect("start");
    assert_eq!(started.labels, labels("one"));
    let listed = env.engine.list().await.expect("list");
    assert_eq!(listed[0].labels, labels("one"));
    let inside = env.out(&id, "env").await;
    assert!(!inside.contains("sandyard.test"), "{inside}");
    env.finish().await;
}

#[tokio::test]
async fn a_ready_sandbox_takes_the_labels_of_its_new_owner() {
    let env = TestEnv::new().await;
    env.engine
        .set_pool(vec![ready("host", 1)])
        .await
        .expect("fill");
    let spare = std::fs::read_dir(env.data.join("spares"))
        .expect("spares")
        .flatten()
        .next()
        .expect("a ready one")
        .file_name();
    let info = env.engine.create(&labelled("mine")).await.expect("create");
    assert_eq!(
        info.id.as_str(),
        spare.to_str().expect("text"),
        "from the pool"
    );
    assert_eq!(info.labels, labels("mine"));
    let found = env.engine.inspect(&info.id).await.expect("inspect");
    assert_eq!(found.labels, labels("mine"));
    env.finish().await;
}

#[tokio::test]
async fn a_fork_has_the_labels_token_and_name_it_was_given_and_none_of_the_others() {
    let env = TestEnv::new().await;
    let spec = SandboxSpec {
        access_token: Some("first".into()),
        env: BTreeMap::from([("WHO".to_owned(), "first".to_owned())]),
        ..labelled("one")
    };
    let id = env.engine.create(&spec).await.expect("create").id;
    let plain = env.engine.fork(&id, &ForkSpec::default()).await;
    let plain = plain.expect("fork");
    assert_eq!(plain.labels, BTreeMap::new());
    assert_eq!(env.out(&plain.id, "echo $WHO").await, "first");
    let fork = ForkSpec {
        env: Some(BTreeMap::from([("WHO".to_owned(), "second".to_owned())])),
        access_token: Some("second".into()),
        hostname: Some("other".into()),
        labels: labels("two"),
    };
    let fork = env.engine.fork(&id, &fork).await.expect("fork");
    assert_eq!(fork.labels, labels("two"));
    assert_eq!(
        env.out(&fork.id, "echo $WHO $(hostname)").await,
        "second other"
    );
    let token = |id: &sandyard_core::SandboxId| {
        let path = env.data.join("sandboxes").join(id.as_str());
        let record = std::fs::read(path.join("state.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        record["spec"]["access_token"].as_str().map(str::to_owned)
    };
    assert_eq!(token(&fork.id).as_deref(), Some("second"));
    assert_ne!(token(&plain.id).as_deref(), Some("first"));
    env.finish().await;
}

#[tokio::test]
async fn labels_beyond_all_measure_are_refused() {
    let env = TestEnv::new().await;
    let many = (0..65).map(|n| (n.to_string(), String::new())).collect();
    for labels in [
        labels(&"x".repeat(1025)),
        BTreeMap::from([(String::new(), String::new())]),
        many,
    ] {
        let spec = SandboxSpec { labels, ..small() };
        let refused = env.engine.create(&spec).await.expect_err("refused");
        assert_eq!(refused.kind, ErrorKind::Invalid);
    }
    assert_eq!(env.engine.list().await.expect("list"), []);
    env.finish().await;
}

#[tokio::test]
async fn the_installation_id_outlives_launchers() {
    let env = TestEnv::new().await;
    let id = env.engine.hello().await.expect("hello").installation_id;
    assert_eq!(id.len(), 32, "{id}");
    env.kill_launcher().await;
    let after = env.engine.hello().await.expect("hello").installation_id;
    assert_eq!(after, id);
    env.finish().await;
}
