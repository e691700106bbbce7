//! Snapshots, forks and diffs.

use sandyard_engine::{ErrorKind, ForkSpec, SandboxSpec};
use sandyard_template::ChangeKind;

use crate::test_env::{TestEnv, small};

#[tokio::test]
async fn a_snapshot_of_a_running_sandbox_is_a_template() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    env.sh(&id, "echo one > ~/file; sudo rm -r /opt/* 2>/dev/null; sudo touch /usr/local/mark; mkdir -p ~/d && touch ~/d/x; ln ~/file ~/hard").await;
    env.engine.snapshot(&id, "first").await.expect("snapshot");
    env.sh(&id, "echo two > ~/file").await;
    let copy = env
        .engine
        .create(&SandboxSpec {
            template: "first".into(),
            ..small()
        })
        .await
        .expect("create")
        .id;
    assert_eq!(
        env.out(
            &copy,
            "cat ~/file ~/hard; ls /usr/local/mark; stat -c %U ~/file ~/d"
        )
        .await,
        "one\none\n/usr/local/mark\nuser\nuser"
    );
    assert_eq!(env.out(&id, "cat ~/file").await, "two");
    // A snapshot of a sandbox that stands on a snapshot.
    env.sh(&copy, "rm ~/file; echo three > ~/third").await;
    env.engine
        .snapshot(&copy, "second")
        .await
        .expect("snapshot");
    let last = env
        .engine
        .create(&SandboxSpec {
            template: "second".into(),
            ..small()
        })
        .await
        .expect("create")
        .id;
    assert_eq!(
        env.out(&last, "ls ~; cat ~/third").await,
        "d\nhard\nthird\nworkspace\nthree"
    );
    // The template can go while sandboxes stand on its layers.
    env.engine.remove_template("second").await.expect("remove");
    assert_eq!(env.out(&last, "cat ~/third ~/hard").await, "three\none");
    env.engine.stop(&last).await.expect("stop");
    env.engine.sweep().await.expect("sweep");
    env.engine.start(&last).await.expect("start");
    assert_eq!(env.out(&last, "cat ~/third ~/hard").await, "three\none");
    assert_eq!(
        env.engine.remove_template("second").await.unwrap_err().kind,
        ErrorKind::NotFound
    );
    env.finish().await;
}

#[tokio::test]
async fn a_snapshot_of_a_stopped_sandbox_works_too() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    env.sh(&id, "echo kept > ~/file").await;
    env.engine.stop(&id).await.expect("stop");
    env.engine.snapshot(&id, "still").await.expect("snapshot");
    let copy = env
        .engine
        .create(&SandboxSpec {
            template: "still".into(),
            ..small()
        })
        .await
        .expect("create")
        .id;
    assert_eq!(env.out(&copy, "cat ~/file").await, "kept");
    env.finish().await;
}

#[tokio::test]
async fn a_fork_has_the_files_and_a_life_of_its_own() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    env.sh(&id, "echo shared > ~/file").await;
    let fork = env
        .engine
        .fork(&id, &ForkSpec::default())
        .await
        .expect("fork")
        .id;
    env.sh(&fork, "echo changed > ~/file").await;
    assert_eq!(env.out(&fork, "cat ~/file").await, "changed");
    assert_eq!(env.out(&id, "cat ~/file").await, "shared");
    assert!(
        env.engine
            .templates()
            .await
            .expect("templates")
            .iter()
            .all(|template| !template.name.starts_with("fork-"))
    );
    env.engine.delete(&id).await.expect("delete");
    assert_eq!(
        env.out(&fork, "cat ~/file; touch ~/more; ls ~").await,
        "changed\nfile\nmore\nworkspace"
    );
    env.finish().await;
}

#[tokio::test]
async fn the_diff_lists_what_the_user_changed_and_nothing_else() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    assert_eq!(env.engine.diff(&id).await.expect("diff").changes, []);
    env.sh(
        &id,
        "echo new > ~/new; echo more >> ~/.bashrc; sudo rm /etc/shells; sudo touch /usr/local/mark",
    )
    .await;
    let changes = env.engine.diff(&id).await.expect("diff").changes;
    let short: Vec<_> = changes
        .iter()
        .map(|change| (change.path.to_str().expect("UTF-8"), change.kind))
        .collect();
    for expected in [
        ("/home/user/new", ChangeKind::Added),
        ("/home/user/.bashrc", ChangeKind::Modified),
        ("/etc/shells", ChangeKind::Deleted),
        ("/usr/local/mark", ChangeKind::Added),
    ] {
        assert!(
            short.contains(&expected),
            "{expected:?} is not in {short:?}"
        );
    }
    assert!(
        !short
            .iter()
            .any(|(path, _)| path.contains("hostname") || *path == "/etc/hosts"),
        "{short:?}"
    );
    env.finish().await;
}
