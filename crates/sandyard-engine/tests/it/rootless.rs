//! The engine as an ordinary user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;
use std::time::Duration;

use sandyard_core::SandboxState::{Running, Stopped};
use sandyard_engine::{ForkSpec, Mode};

use crate::test_env::{TestEnv, copy_launcher, wait_for};
use crate::{network, tools, trust, volumes};

/// Nobody's id on any system we know of.
const UID: u32 = 54_321;

/// A env whose launcher runs as an ordinary user.
async fn env(uid: u32) -> TestEnv {
    assert!(
        rustix::process::geteuid().is_root(),
        "these tests need root: run `./test` as root"
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    // The build folder may be closed to others.
    let program = folder.path().join("sandyard-launcher");
    copy_launcher(&program);
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("make the data directory");
    chown(&data, Some(uid), Some(uid)).expect("give it away");
    let drop_to = format!("setpriv --reuid={uid} --regid={uid} --clear-groups --");
    let mut launcher: Vec<String> = drop_to.split(' ').map(str::to_owned).collect();
    launcher.push(program.display().to_string());
    TestEnv::with_launcher(folder, launcher).await
}

/// A user with subordinate ids, for as long as this lives.
struct Account {
    name: &'static str,
}

impl Account {
    const UID: u32 = 54_323;

    fn add() -> Self {
        let account = Self {
            name: "sandyard-it",
        };
        account.remove();
        let uid = Self::UID.to_string();
        run(
            "useradd",
            &[
                "--no-create-home",
                "--uid",
                &uid,
                "--user-group",
                account.name,
            ],
        );
        run(
            "usermod",
            &[
                "--add-subuids",
                "1200000000-1200065535",
                "--add-subgids",
                "1200000000-1200065535",
                account.name,
            ],
        );
        account
    }

    fn remove(&self) {
        let _ = Command::new("userdel").arg(self.name).output();
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Runs a program, again if somebody else is changing the host's users just now.
fn run(program: &str, arguments: &[&str]) {
    let done = wait_for(Duration::from_secs(60), || {
        let output = Command::new(program).args(arguments).output().expect("run");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(()),
            false if message.contains("try again later") => Err(message),
            false => panic!("{program}: {message}"),
        }
    });
    assert_eq!(done, Ok(()), "{program}");
}

#[tokio::test]
async fn the_tool_server_is_there_for_an_ordinary_user_too() {
    let env = env(UID).await;
    // There is one id only: everybody inside is root.
    tools::check(&env, "0").await;
    env.finish().await;
}

#[tokio::test]
async fn an_ordinary_user_with_subordinate_ids_gets_more_than_one_inside() {
    let account = Account::add();
    let env = env(Account::UID).await;
    assert_eq!(
        env.engine.hello().await.expect("hello").mode,
        Mode::Subordinate {
            uid: Account::UID,
            gid: Account::UID
        }
    );
    trust::certify(&env, include_str!("other.pem"));
    let info = env.create().await;
    network::assert_closed(&env, &info).await;
    trust::assert_trusts(&env, &info.id, include_str!("other.pem")).await;
    assert_eq!(env.engine.diff(&info.id).await.expect("diff").changes, []);
    assert!(
        !info
            .limitations
            .iter()
            .any(|limitation| limitation.contains("one user id")),
        "{:?}",
        info.limitations
    );
    let id = info.id;
    assert_eq!(
        env.out(
            &id,
            "id -un; sudo id -un; stat -c %U ~ /etc; echo mine > ~/file; stat -c %U ~/file"
        )
        .await,
        "user\nroot\nuser\nroot\nuser"
    );
    assert_eq!(env.out(&id, "sudo sh -c 'touch /root/secret && chmod 600 /root/secret'; cat /root/secret 2>&1 | grep -c denied").await, "1");
    env.engine.stop(&id).await.expect("stop");
    env.engine.start(&id).await.expect("start");
    assert_eq!(
        env.out(&id, "cat ~/file; sudo ls /root").await,
        "mine\nsecret"
    );
    let fork = env
        .engine
        .fork(&id, &ForkSpec::default())
        .await
        .expect("fork")
        .id;
    assert_eq!(
        env.out(&fork, "stat -c %U ~/file; sudo stat -c %U /root/secret")
            .await,
        "user\nroot"
    );
    volumes::assert_volumes_work(&env).await;
    env.finish().await;
    drop(account);
}

#[tokio::test]
async fn a_fork_bomb_of_an_ordinary_user_stops_without_a_cgroup() {
    let env = env(UID + 1).await;
    let id = env.create().await.id;
    let forked = env.out(&id, "python3 -c \"\nimport os, time\ncount = 0\ntry:\n    while count < 2000:\n        if os.fork() == 0: time.sleep(60)\n        count += 1\nexcept OSError: pass\nprint(count)\n\"").await;
    let forked: u32 = forked.parse().expect("a count");
    assert!(
        forked < 128,
        "{forked} processes were made with a limit of 128"
    );
    env.engine.delete(&id).await.expect("delete");
    env.finish().await;
}

#[tokio::test]
async fn an_ordinary_users_sandbox_that_writes_more_than_its_limit_is_stopped_with_its_files() {
    let env = env(UID + 3).await;
    let id = env.create().await.id;
    env.sh(
        &id,
        "dd if=/dev/zero of=/tmp/big bs=1M count=100 status=none",
    )
    .await;
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let info = loop {
        let info = env.engine.inspect(&id).await.expect("inspect");
        if info.state == Stopped {
            break info;
        }
        assert!(std::time::Instant::now() < give_up, "still running");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!(
        info.reason.as_deref(),
        Some("it wrote more than its disk limit")
    );
    env.finish().await;
}

#[tokio::test]
async fn an_ordinary_user_gets_a_sandbox_with_its_limitations() {
    let env = env(UID).await;
    assert_eq!(
        env.engine.hello().await.expect("hello").mode,
        Mode::Rootless { uid: UID, gid: UID }
    );
    let info = env.create().await;
    assert_eq!(info.state, Running);
    assert!(
        info.limitations
            .iter()
            .any(|limitation| limitation.contains("one user id")),
        "{:?}",
        info.limitations
    );
    assert!(
        info.limitations
            .iter()
            .any(|limitation| limitation.contains("disk")),
        "{:?}",
        info.limitations
    );
    let id = info.id;
    assert_eq!(env.out(&id, "python3 -c 'print(6*7)'").await, "42");
    assert_eq!(env.out(&id, "echo $HOME $USER; sudo -n true && echo sudo; echo x > ~/f && cat ~/f; ls /proc | grep -c '^[0-9]'").await.lines().take(3).collect::<Vec<_>>(), ["/home/user user", "sudo", "x"]);
    assert_eq!(
        env.out(&id, "cat /proc/self/uid_map | awk '{print $1, $2, $3}'")
            .await,
        format!("0 {UID} 1")
    );
    volumes::assert_volumes_work(&env).await;
    env.finish().await;
}

#[tokio::test]
async fn an_ordinary_users_sandbox_pauses_stops_and_starts() {
    let env = env(UID).await;
    let id = env.create().await.id;
    env.sh(&id, "echo kept > ~/file; (while :; do echo >> ~/ticks; sleep 0.01; done) >/dev/null 2>&1 & until [ -s ~/ticks ]; do sleep 0.01; done").await;
    env.engine.pause(&id).await.expect("pause");
    let ticks = env
        .data
        .join("sandboxes")
        .join(id.as_str())
        .join("disk/root/upper/home/user/ticks");
    let before = fs::metadata(&ticks).expect("ticks").len();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(fs::metadata(&ticks).expect("ticks").len(), before);
    env.engine.resume(&id).await.expect("resume");
    assert_eq!(env.out(&id, "cat ~/file").await, "kept");
    env.engine.stop(&id).await.expect("stop");
    env.engine.start(&id).await.expect("start");
    assert_eq!(env.out(&id, "cat ~/file").await, "kept");
    let fork = env
        .engine
        .fork(&id, &ForkSpec::default())
        .await
        .expect("fork")
        .id;
    assert_eq!(env.out(&fork, "cat ~/file").await, "kept");
    // What its own user stopped stays stopped, whatever is swept.
    let stop = "sleep 100 > /dev/null 2>&1 & kill -STOP $!; until grep -q 'State:.T' /proc/$!/status; do sleep 0.01; done; echo $!";
    let stopped = env.out(&fork, stop).await;
    let state = format!(
        "sudo true; for i in 1 2 3; do sleep 0.5; done; cut -d' ' -f3 /proc/{stopped}/stat"
    );
    let (state, swept) = tokio::join!(env.out(&fork, &state), env.engine.sweep());
    swept.expect("sweep");
    assert_eq!(state, "T");
    env.finish().await;
}

#[tokio::test]
async fn an_ordinary_users_sandbox_has_the_same_egress_and_trusts_the_gateway() {
    let env = env(UID + 4).await;
    trust::certify(&env, include_str!("other.pem"));
    let info = env.create().await;
    network::assert_closed(&env, &info).await;
    trust::assert_trusts(&env, &info.id, include_str!("other.pem")).await;
    assert_eq!(env.engine.diff(&info.id).await.expect("diff").changes, []);
    env.finish().await;
}
