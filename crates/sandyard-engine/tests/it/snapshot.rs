//! Snapshots, forks and diffs.

use sandyard_engine::{ErrorKind, ForkSpec, SandboxSpec};
use sandyard_template::ChangeKind;

use crate::yard::{Yard, small};

#[tokio::test]
async fn a_snapshot_of_a_running_sandbox_is_a_template() {
    let yard = Yard::new().await;
    let id = yard.create().await.id;
    yard.sh(&id, "echo one > ~/file; sudo rm -r /opt/* 2>/dev/null; sudo touch /usr/local/mark; mkdir -p ~/d && touch ~/d/x; ln ~/file ~/hard").await;
    yard.engine.snapshot(&id, "first").await.expect("snapshot");
    yard.sh(&id, "echo two > ~/file").await;
    let copy = yard
        .engine
        .create(&SandboxSpec {
            template: "first".into(),
            ..small()
        })
        .await
        .expect("create")
        .id;
    assert_eq!(
        yard.out(
            &copy,
            "cat ~/file ~/hard; ls /usr/local/mark; stat -c %U ~/file ~/d"
        )
        .await,
        "one\none\n/usr/local/mark\nuser\nuser"
    );
    assert_eq!(yard.out(&id, "cat ~/file").await, "two");
    // A snapshot of a sandbox that stands on a snapshot.
    yard.sh(&copy, "rm ~/file; echo three > ~/third").await;
    yard.engine
        .snapshot(&copy, "second")
        .await
        .expect("snapshot");
    let last = yard
        .engine
        .create(&SandboxSpec {
            template: "second".into(),
            ..small()
        })
        .await
        .expect("create")
        .id;
    assert_eq!(
        yard.out(&last, "ls ~; cat ~/third").await,
        "d\nhard\nthird\nthree"
    );
    // The template can go while sandboxes stand on its layers.
    yard.engine.remove_template("second").await.expect("remove");
    assert_eq!(yard.out(&last, "cat ~/third ~/hard").await, "three\none");
    yard.engine.stop(&last).await.expect("stop");
    yard.engine.sweep().await.expect("sweep");
    yard.engine.start(&last).await.expect("start");
    assert_eq!(yard.out(&last, "cat ~/third ~/hard").await, "three\none");
    assert_eq!(
        yard.engine
            .remove_template("second")
            .await
            .unwrap_err()
            .kind,
        ErrorKind::NotFound
    );
    yard.finish().await;
}

#[tokio::test]
async fn a_snapshot_of_a_stopped_sandbox_works_too() {
    let yard = Yard::new().await;
    let id = yard.create().await.id;
    yard.sh(&id, "echo kept > ~/file").await;
    yard.engine.stop(&id).await.expect("stop");
    yard.engine.snapshot(&id, "still").await.expect("snapshot");
    let copy = yard
        .engine
        .create(&SandboxSpec {
            template: "still".into(),
            ..small()
        })
        .await
        .expect("create")
        .id;
    assert_eq!(yard.out(&copy, "cat ~/file").await, "kept");
    yard.finish().await;
}

#[tokio::test]
async fn a_fork_has_the_files_and_a_life_of_its_own() {
    let yard = Yard::new().await;
    let id = yard.create().await.id;
    yard.sh(&id, "echo shared > ~/file").await;
    let fork = yard
        .engine
        .fork(&id, &ForkSpec::default())
        .await
        .expect("fork")
        .id;
    yard.sh(&fork, "echo changed > ~/file").await;
    assert_eq!(yard.out(&fork, "cat ~/file").await, "changed");
    assert_eq!(yard.out(&id, "cat ~/file").await, "shared");
    assert!(
        yard.engine
            .templates()
            .await
            .expect("templates")
            .iter()
            .all(|template| !template.name.starts_with("fork-"))
    );
    yard.engine.delete(&id).await.expect("delete");
    assert_eq!(
        yard.out(&fork, "cat ~/file; touch ~/more; ls ~").await,
        "changed\nfile\nmore"
    );
    yard.finish().await;
}

#[tokio::test]
async fn the_diff_lists_what_the_user_changed_and_nothing_else() {
    let yard = Yard::new().await;
    let id = yard.create().await.id;
    assert_eq!(yard.engine.diff(&id).await.expect("diff").changes, []);
    yard.sh(
        &id,
        "echo new > ~/new; echo more >> ~/.bashrc; sudo rm /etc/shells; sudo touch /usr/local/mark",
    )
    .await;
    let changes = yard.engine.diff(&id).await.expect("diff").changes;
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
    yard.finish().await;
}
