//! Volumes: they outlive sandboxes, are in several at once, and hold what fits.

mod crash;
mod rejections;

use std::fs;
use std::path::Path;

use sandyard_core::SandboxId;
use sandyard_core::SandboxState::Running;
use sandyard_engine::{ForkSpec, MountSpec, SandboxSpec};

use crate::test_env::{TestEnv, ready, small};

const SIZE: u64 = 32 << 20;

/// A small sandbox with these volumes: `id:path`.
fn with(mounts: &[&str]) -> SandboxSpec {
    let mount = |text: &&str| {
        let (volume, path) = text.split_once(':').expect("id:path");
        MountSpec {
            volume: volume.to_owned(),
            path: path.to_owned(),
        }
    };
    SandboxSpec {
        mounts: mounts.iter().map(mount).collect(),
        ..small()
    }
}

async fn create(env: &TestEnv, mounts: &[&str]) -> SandboxId {
    let made = env.engine.create(&with(mounts)).await;
    made.expect("create").id
}

/// The loop devices that stand on the image of a volume.
fn devices(data: &Path, id: &str) -> Vec<String> {
    let image = data.join("volumes").join(id).join("disk.img");
    let image = image.display().to_string();
    let block = fs::read_dir("/sys/block").expect("block devices");
    let backing = |entry: fs::DirEntry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        (file.trim_end() == image).then(|| entry.file_name().to_string_lossy().into_owned())
    };
    block.flatten().filter_map(backing).collect()
}

/// What holds for ordinary users, too, whose volumes are folders.
pub(crate) async fn assert_volumes_work(env: &TestEnv) {
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let spec = with(&["v1:/mnt/deep/data"]);
    let made = env.engine.create(&spec).await.expect("create");
    let is_reported = made
        .limitations
        .iter()
        .any(|limitation| limitation.contains("volumes"));
    assert!(is_reported, "{:?}", made.limitations);
    let one = made.id;
    let two = create(env, &["v1:/data"]).await;
    let line =
        "echo kept > /mnt/deep/data/file; stat -c '%U %a' /mnt/deep/data/file /mnt/deep/data";
    let owned = env.out(&one, line).await;
    assert!(owned.starts_with(['u', 'r']), "{owned}");
    assert!(owned.ends_with(" 777"), "{owned}");
    let flags = env.out(&one, "findmnt -no OPTIONS /mnt/deep/data").await;
    assert!(
        flags.contains("nosuid") && flags.contains("nodev"),
        "{flags}"
    );
    assert_eq!(
        env.out(&two, "cat /data/file; sudo rm /data/file").await,
        "kept"
    );
    assert_eq!(
        env.out(
            &one,
            "ls -A /mnt/deep/data; echo again > /mnt/deep/data/file"
        )
        .await,
        ""
    );
    env.engine.stop(&one).await.expect("stop");
    env.engine.start(&one).await.expect("start");
    assert_eq!(env.out(&one, "cat /mnt/deep/data/file").await, "again");
    for id in [&one, &two] {
        env.engine.delete(id).await.expect("delete");
    }
    let file = env.data.join("volumes/v1/data/file");
    assert_eq!(fs::read_to_string(file).expect("still there"), "again\n");
}

#[tokio::test]
async fn a_volume_is_empty_at_first_and_outlives_its_sandboxes() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/mnt/data"]).await;
    let seen = "ls -A /mnt/data; stat -c '%u %g %a' /mnt/data; echo kept > /mnt/data/file; stat -c %U /mnt/data/file";
    assert_eq!(env.out(&id, seen).await, "1000 1000 777\nuser");
    assert_eq!(
        env.out(
            &id,
            "sudo sh -c 'echo root > /mnt/data/root'; stat -c %U /mnt/data/root"
        )
        .await,
        "root"
    );
    env.engine.delete(&id).await.expect("delete");
    env.engine
        .create_volume("v1", SIZE)
        .await
        .expect("one that is there stays as it is");
    let other = create(&env, &["v1:/home/user/deep/below/data"]).await;
    let seen = "cd ~/deep/below; cat data/file data/root; stat -c %U data/file data/root . ..; touch ../mine && echo mine";
    assert_eq!(
        env.out(&other, seen).await,
        "kept\nroot\nuser\nroot\nuser\nuser\nmine"
    );
    env.finish().await;
}

#[tokio::test]
async fn two_sandboxes_see_each_others_files_at_once_through_one_device() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let specs = [with(&["v1:/data"]), with(&["v1:/a", "v1:/b"])];
    let (one, two) = tokio::join!(env.engine.create(&specs[0]), env.engine.create(&specs[1]));
    let (one, two) = (one.expect("create").id, two.expect("create").id);
    assert_eq!(devices(&env.data, "v1").len(), 1);
    env.sh(&one, "echo first > /data/file").await;
    assert_eq!(
        env.out(&two, "cat /a/file; echo second >> /b/file").await,
        "first"
    );
    assert_eq!(env.out(&one, "cat /data/file").await, "first\nsecond");
    // A lock of one is a lock for the other: it is one file system.
    // Held until the other has seen it, however late that is.
    let (held, refused) = tokio::join!(
        env.out(
            &one,
            "exec 9> /data/lock; flock 9 && echo got; until [ -e /data/seen ]; do sleep 0.01; done"
        ),
        env.out(
            &two,
            "until [ -e /a/lock ] && ! flock -n /a/lock true; do sleep 0.01; done; echo held; touch /a/seen"
        )
    );
    assert_eq!((held.as_str(), refused.as_str()), ("got", "held"));
    env.engine.delete(&one).await.expect("delete");
    assert_eq!(env.out(&two, "cat /b/file").await, "first\nsecond");
    env.finish().await;
}

#[tokio::test]
async fn many_at_once_share_one_device() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let spec = with(&["v1:/data"]);
    let made = futures_util::future::join_all((0..8).map(|_| env.engine.create(&spec))).await;
    let ids: Vec<_> = made
        .into_iter()
        .map(|info| info.expect("create").id)
        .collect();
    assert_eq!(devices(&env.data, "v1").len(), 1);
    for id in &ids {
        env.sh(id, &format!("echo > /data/{id}")).await;
    }
    assert_eq!(env.out(&ids[0], "ls /data | wc -l").await, "8");
    env.finish().await;
}

#[tokio::test]
async fn stopping_forking_and_snapshots_leave_the_volume_out_and_alone() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/mnt/data"]).await;
    env.sh(&id, "echo one > /mnt/data/file; echo own > ~/own")
        .await;
    env.engine.stop(&id).await.expect("stop");
    env.engine.start(&id).await.expect("start");
    assert_eq!(env.out(&id, "cat /mnt/data/file").await, "one");
    let changes = env.engine.diff(&id).await.expect("diff").changes;
    let reported = |path: &str| changes.iter().any(|change| change.path == Path::new(path));
    assert!(
        reported("/home/user/own") && reported("/mnt/data"),
        "{changes:?}"
    );
    assert!(!reported("/mnt/data/file"), "{changes:?}");
    let fork = env.engine.fork(&id, &ForkSpec::default()).await;
    let fork = fork.expect("fork").id;
    assert_eq!(
        env.out(&fork, "cat ~/own /mnt/data/file; echo two > /mnt/data/file")
            .await,
        "own\none"
    );
    assert_eq!(env.out(&id, "cat /mnt/data/file").await, "two");
    env.engine.snapshot(&id, "kept").await.expect("snapshot");
    let spec = SandboxSpec {
        template: "kept".to_owned(),
        ..small()
    };
    let plain = env.engine.create(&spec).await.expect("create").id;
    assert_eq!(env.out(&plain, "cat ~/own; ls -A /mnt/data").await, "own");
    env.finish().await;
}

#[tokio::test]
async fn a_full_volume_is_full_and_nothing_else_is() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/data"]).await;
    let fill = "dd if=/dev/zero of=/data/big bs=1M count=200 2>&1 | grep -o 'No space left on device'; stat -c %s /data/big";
    let is_reported = env.out(&id, fill).await;
    let (why, size) = is_reported.split_once('\n').expect("two lines");
    assert_eq!(why, "No space left on device");
    let size: u64 = size.parse().expect("a size");
    assert!((16 << 20..SIZE).contains(&size), "{size}");
    assert_eq!(
        env.out(
            &id,
            "echo own > ~/own && cat ~/own; rm /data/big; echo x > /data/x && cat /data/x"
        )
        .await,
        "own\nx"
    );
    env.finish().await;
}

#[tokio::test]
async fn a_sandbox_with_volumes_takes_no_ready_one() {
    let env = TestEnv::new().await;
    env.engine
        .set_pool(vec![ready("host", 1)])
        .await
        .expect("fill");
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let made = env.engine.create(&with(&["v1:/data"])).await;
    let made = made.expect("create");
    assert_eq!(made.state, Running);
    assert_eq!(env.engine.ready_count().await.expect("count"), 1);
    assert_eq!(env.out(&made.id, "touch /data/x; ls /data").await, "x");
    env.finish().await;
}
