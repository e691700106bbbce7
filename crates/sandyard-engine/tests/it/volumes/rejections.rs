//! What a volume is not to be: a way to privileges, a way elsewhere, in two places of one name, gone under somebody's feet.

use std::path::Path;

use sandyard_engine::{ErrorKind, SandboxSpec};

use super::{SIZE, create, with};
use crate::test_env::TestEnv;

#[tokio::test]
async fn nothing_in_a_volume_gives_privileges() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/data"]).await;
    let flags = env.out(&id, "findmnt -no OPTIONS /data").await;
    for flag in ["nosuid", "nodev", "rw"] {
        assert!(flags.split(',').any(|one| one == flag), "{flag}: {flags}");
    }
    let suid = "sudo sh -c 'cp /usr/bin/id /data/id && chmod 4755 /data/id'; /data/id -u";
    assert_eq!(env.out(&id, suid).await, "1000");
    env.finish().await;
}

#[tokio::test]
async fn a_link_at_the_mount_point_leads_nowhere() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    // A template with links: one in place of the folder, one on the way to it, and one that would lead out.
    let id = env.create().await.id;
    env.sh_as(
        &id,
        "root",
        "ln -s /etc /link; ln -s / /way; ln -s ../../../../../../etc /out; echo > /file",
    )
    .await;
    env.engine.snapshot(&id, "links").await.expect("snapshot");
    for path in ["/link", "/link/x", "/way/x", "/out", "/file", "/file/x"] {
        let spec = SandboxSpec {
            template: "links".to_owned(),
            ..with(&[&format!("v1:{path}")])
        };
        let refused = env.engine.create(&spec).await.expect_err(path);
        assert_eq!(refused.kind, ErrorKind::Conflict, "{path}: {refused}");
        assert_eq!(refused.cleanup, Vec::<String>::new());
    }
    // What ran before may have put one on the way: the folder above a mount point can be moved.
    let id = create(&env, &["v1:/srv/deep/data"]).await;
    env.sh_as(
        &id,
        "root",
        "mv /srv/deep /srv/moved && ln -s /etc /srv/deep",
    )
    .await;
    env.engine.stop(&id).await.expect("stop");
    let refused = env.engine.start(&id).await.expect_err("refused");
    assert_eq!(refused.kind, ErrorKind::Conflict, "{refused}");
    assert!(!Path::new("/etc/data").exists());
    env.finish().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_nothing_is_left() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    env.engine.create_volume("v2", SIZE).await.expect("make");
    let kind = async |mounts: &[&str]| {
        let refused = env.engine.create(&with(mounts)).await;
        let refused = refused.expect_err(&format!("{mounts:?}"));
        assert!(refused.hint.is_some(), "{refused:?}");
        refused.kind
    };
    assert_eq!(kind(&["v1:/a", "missing:/b"]).await, ErrorKind::NotFound);
    assert_eq!(kind(&["../v1:/a"]).await, ErrorKind::Invalid);
    for mounts in [
        &["v1:/a", "v2:/a"][..],
        &["v1:/a", "v2:/a/b"],
        &["v1:relative"],
        &["v1:/"],
        &["v1:/a/../../b"],
        &["v1:/proc/sys"],
    ] {
        assert_eq!(kind(mounts).await, ErrorKind::Invalid, "{mounts:?}");
    }
    for (id, size) in [
        ("", SIZE),
        ("a/b", SIZE),
        (".new", SIZE),
        ("v3", 0),
        ("v3", u64::MAX),
    ] {
        let refused = env.engine.create_volume(id, size).await;
        assert_eq!(
            refused.expect_err(id).kind,
            ErrorKind::Invalid,
            "{id} {size}"
        );
    }
    for id in ["missing", "", "../sandboxes"] {
        env.engine
            .delete_volume(id)
            .await
            .expect("nothing to delete");
    }
    assert_eq!(env.engine.list().await.expect("list"), []);
    env.finish().await;
}

#[tokio::test]
async fn a_volume_goes_only_when_no_sandbox_has_it() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/data"]).await;
    env.sh(&id, "echo old > /data/file").await;
    for stopped in [false, true] {
        if stopped {
            env.engine.stop(&id).await.expect("stop");
        }
        let refused = env.engine.delete_volume("v1").await.expect_err("in use");
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }
    env.engine.delete(&id).await.expect("delete");
    env.engine.delete_volume("v1").await.expect("delete");
    env.engine.delete_volume("v1").await.expect("delete again");
    let removed = env.engine.create(&with(&["v1:/data"])).await;
    assert_eq!(removed.expect_err("gone").kind, ErrorKind::NotFound);
    // Another one of that name is another one.
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/data"]).await;
    assert_eq!(env.out(&id, "ls -A /data").await, "");
    env.finish().await;
}
