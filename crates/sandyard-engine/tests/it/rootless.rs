//! The engine as an ordinary user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use sandyard_core::SandboxState::Running;
use sandyard_engine::Mode;

use crate::yard::{LAUNCHER, Yard};

/// Nobody's id on any system we know of.
const UID: u32 = 54_321;

async fn yard() -> Yard {
    assert!(rustix::process::geteuid().is_root(), "these tests need root: run `./test` as root");
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    // The build folder may be closed to others.
    let program = folder.path().join("sandyard-launcher");
    fs::copy(LAUNCHER, &program).expect("copy the launcher");
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("make the data directory");
    chown(&data, Some(UID), Some(UID)).expect("give it away");
    let drop_to = format!("--reuid={UID} --regid={UID} --clear-groups --");
    let mut launcher = vec!["setpriv".to_owned()];
    launcher.extend(drop_to.split(' ').map(str::to_owned));
    launcher.push(program.display().to_string());
    Yard::with_launcher(folder, launcher).await
}

#[tokio::test]
async fn an_ordinary_user_gets_a_sandbox_and_is_told_what_it_lacks() {
    let yard = yard().await;
    assert_eq!(yard.engine.hello().await.expect("hello").mode, Mode::Rootless { uid: UID, gid: UID });
    let info = yard.create().await;
    assert_eq!(info.state, Running);
    assert!(info.lacks.iter().any(|lack| lack.contains("one user id")), "{:?}", info.lacks);
    assert!(info.lacks.iter().any(|lack| lack.contains("disk")), "{:?}", info.lacks);
    let id = info.id;
    assert_eq!(yard.out(&id, "python3 -c 'print(6*7)'").await, "42");
    assert_eq!(yard.out(&id, "echo $HOME $USER; sudo -n true && echo sudo; echo x > ~/f && cat ~/f; ls /proc | grep -c '^[0-9]'").await.lines().take(3).collect::<Vec<_>>(), ["/home/user user", "sudo", "x"]);
    assert_eq!(yard.out(&id, "cat /proc/self/uid_map | awk '{print $1, $2, $3}'").await, format!("0 {UID} 1"));
    yard.finish().await;
}

#[tokio::test]
async fn an_ordinary_users_sandbox_pauses_stops_and_starts() {
    let yard = yard().await;
    let id = yard.create().await.id;
    yard.sh(&id, "echo kept > ~/file; (while :; do echo >> ~/ticks; sleep 0.01; done) >/dev/null 2>&1 & until [ -s ~/ticks ]; do sleep 0.01; done").await;
    yard.engine.pause(&id).await.expect("pause");
    let ticks = yard.data.join("sandboxes").join(id.as_str()).join("disk/root/upper/home/user/ticks");
    let before = fs::metadata(&ticks).expect("ticks").len();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(fs::metadata(&ticks).expect("ticks").len(), before);
    yard.engine.resume(&id).await.expect("resume");
    assert_eq!(yard.out(&id, "cat ~/file").await, "kept");
    yard.engine.stop(&id).await.expect("stop");
    yard.engine.start(&id).await.expect("start");
    assert_eq!(yard.out(&id, "cat ~/file").await, "kept");
    let fork = yard.engine.fork(&id, None).await.expect("fork").id;
    assert_eq!(yard.out(&fork, "cat ~/file").await, "kept");
    yard.finish().await;
}
