//! create, run, pause, resume, stop, start, delete.

use std::time::Duration;

use sandyard_core::SandboxState::{Paused, Running, Stopped};
use sandyard_engine::{ErrorKind, SandboxSpec};

use crate::test_env::{TestEnv, small, text};

#[tokio::test]
async fn a_new_sandbox_runs_commands_as_user_and_as_root() {
    let env = TestEnv::new().await;
    let mut spec = small();
    spec.env.insert("GREETING".into(), "hello".into());
    spec.hostname = Some("box".into());
    let info = env.engine.create(&spec).await.expect("create");
    assert_eq!(info.state, Running);
    assert_eq!(info.limitations, Vec::<String>::new());
    assert_eq!(
        env.out(
            &info.id,
            "echo $GREETING $(id -un) $HOME $(pwd) $(hostname)"
        )
        .await,
        "hello user /home/user /home/user box"
    );
    let root = env
        .sh_as(&info.id, "root", "id -u; cat /etc/hostname; exit 3")
        .await;
    assert_eq!(
        (text(&root.stdout), root.exit.exit_code),
        ("0\nbox".to_owned(), 3)
    );
    assert_eq!(env.out(&info.id, "sudo id -u").await, "0");
    assert_eq!(
        env.out(
            &info.id,
            "echo 1 > ~/a; echo 2 > /workspace/b; echo 3 > /tmp/c; cat ~/a /workspace/b /tmp/c"
        )
        .await,
        "1\n2\n3"
    );
    env.finish().await;
}

#[tokio::test]
async fn a_pause_that_was_asked_for_replaces_one_for_want_of_room() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    env.engine.pause(&id).await.expect("pause");
    let path = env.data.join(format!("sandboxes/{id}/state.json"));
    let record = std::fs::read(&path).expect("the record");
    let mut record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
    let reason = "it went on writing while the host's disk was nearly full";
    record["reason"] = reason.into();
    std::fs::write(&path, record.to_string()).expect("the record");

    let paused = env.engine.pause(&id).await.expect("pause again");
    assert_eq!((paused.state, paused.reason), (Paused, None));
    let paused = env.engine.list().await.expect("list").remove(0);
    assert_eq!((paused.state, paused.reason), (Paused, None), "on record");
    env.finish().await;
}

#[tokio::test]
async fn a_paused_sandbox_stands_still_and_goes_on_with_its_memory() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let boot_id = env.out(&id, "cat /proc/sys/kernel/random/boot_id").await;
    env.sh(
        &id,
        "(while :; do echo >> ~/ticks; sleep 0.01; done) > /dev/null 2>&1 &
        until [ -s ~/ticks ]; do sleep 0.01; done",
    )
    .await;
    assert_eq!(env.engine.pause(&id).await.expect("pause").state, Paused);
    assert_eq!(
        env.engine
            .pause(&id)
            .await
            .expect("pausing twice is fine")
            .state,
        Paused
    );
    let used = async || {
        let stats = env.engine.stats(&id).await.expect("stats");
        stats.cpu_usage_us.expect("counted here")
    };
    let before = used().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let more = used().await - before;
    // One that stands still may have had a last step to do in the kernel; the loop alone takes more than this.
    assert!(more < 1000, "a paused sandbox used {more} us");
    assert_eq!(env.engine.resume(&id).await.expect("resume").state, Running);
    let first: u64 = env
        .out(&id, "wc -l < ~/ticks")
        .await
        .parse()
        .expect("a count");
    let grown = env.out(&id, &format!("for i in $(seq 5000); do n=$(wc -l < ~/ticks); [ $n -gt {first} ] && echo grown && exit; sleep 0.01; done")).await;
    assert_eq!(grown, "grown");
    assert_eq!(
        env.out(&id, "cat /proc/sys/kernel/random/boot_id").await,
        boot_id
    );
    env.finish().await;
}

#[tokio::test]
async fn a_stopped_sandbox_starts_again_with_its_files_and_a_new_boot_id() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let boot_id = env
        .out(
            &id,
            "cat /proc/sys/kernel/random/boot_id; sudo touch /usr/local/mark; echo kept > ~/file",
        )
        .await;
    assert_eq!(env.engine.stop(&id).await.expect("stop").state, Stopped);
    assert_eq!(
        env.engine
            .stop(&id)
            .await
            .expect("stopping twice is fine")
            .state,
        Stopped
    );
    assert_eq!(
        env.engine.pause(&id).await.unwrap_err().kind,
        ErrorKind::Conflict
    );
    assert_eq!(env.engine.start(&id).await.expect("start").state, Running);
    assert_eq!(
        env.out(&id, "ls /usr/local/mark; cat ~/file").await,
        "/usr/local/mark\nkept"
    );
    assert_ne!(
        env.out(&id, "cat /proc/sys/kernel/random/boot_id").await,
        boot_id
    );
    env.finish().await;
}

#[tokio::test]
async fn every_state_can_be_deleted_and_deleting_twice_is_fine() {
    let env = TestEnv::new().await;
    let (running, paused, stopped) = (
        env.create().await.id,
        env.create().await.id,
        env.create().await.id,
    );
    env.engine.pause(&paused).await.expect("pause");
    env.engine.stop(&stopped).await.expect("stop");
    for id in [&running, &paused, &stopped] {
        env.engine.delete(id).await.expect("delete");
        env.engine.delete(id).await.expect("delete again");
        assert_eq!(
            env.engine.inspect(id).await.unwrap_err().kind,
            ErrorKind::NotFound
        );
    }
    env.finish().await;
}

#[tokio::test]
async fn a_sandbox_whose_first_process_is_killed_is_stopped_with_a_reason() {
    let env = TestEnv::new().await;
    let info = env.create().await;
    crate::test_env::kill(info.init.expect("a live sandbox").pid);
    let info = env.engine.inspect(&info.id).await.expect("inspect");
    assert_eq!(info.state, Stopped);
    assert!(
        info.reason
            .is_some_and(|reason| reason.contains("first process ended"))
    );
    assert_eq!(
        env.engine.start(&info.id).await.expect("start").state,
        Running
    );
    env.finish().await;
}

#[tokio::test]
async fn an_ephemeral_sandbox_goes_with_its_lease() {
    let env = TestEnv::new().await;
    let (info, lease) = env.engine.create_ephemeral(&small()).await.expect("create");
    assert_eq!(env.out(&info.id, "echo hi").await, "hi");
    drop(lease);
    let give_up = std::time::Instant::now() + Duration::from_secs(90);
    while env.engine.inspect(&info.id).await.is_ok() {
        assert!(std::time::Instant::now() < give_up, "still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    env.finish().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_the_reason() {
    let env = TestEnv::new().await;
    let refuse = async |change: fn(&mut SandboxSpec)| {
        let mut spec = small();
        change(&mut spec);
        let error = env.engine.create(&spec).await.unwrap_err();
        (error.kind, error.message)
    };
    let (kind, message) = refuse(|spec| spec.limits.memory_bytes = 1).await;
    assert_eq!(
        (kind, message.as_str()),
        (
            ErrorKind::Invalid,
            "`memory_limit` must be between 16 MiB and 1024 TiB (got 1 byte)"
        )
    );
    assert_eq!(
        refuse(|spec| spec.template = "none".into()).await.0,
        ErrorKind::NotFound
    );
    assert_ne!(
        refuse(|spec| spec.template = "../../etc".into()).await.0,
        ErrorKind::Unavailable
    );
    assert_eq!(
        refuse(|spec| spec.hostname = Some("a/b".into())).await.0,
        ErrorKind::Invalid
    );
    assert_eq!(
        refuse(|spec| drop(spec.env.insert("A=B".into(), "c".into())))
            .await
            .0,
        ErrorKind::Invalid
    );
    env.finish().await;
}

#[tokio::test]
async fn eight_deletes_at_once_all_succeed() {
    let env = TestEnv::new().await;
    for _ in 0..10 {
        let id = env.create().await.id;
        let deletes = (0..8).map(|_| env.engine.delete(&id));
        for deleted in futures_util::future::join_all(deletes).await {
            deleted.expect("delete");
        }
    }
    env.finish().await;
}

#[tokio::test]
async fn a_sandbox_whose_record_cannot_be_read_can_be_deleted() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let record = env
        .data
        .join("sandboxes")
        .join(id.as_str())
        .join("state.json");
    std::fs::write(record, "").expect("what a power failure can leave");
    env.engine.delete(&id).await.expect("delete");
    env.finish().await;
}

#[tokio::test]
async fn a_cgroup_that_was_removed_by_half_keeps_nothing_from_working() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let groups = crate::test_env::cgroups(&env.data);
    env.engine.stop(&id).await.expect("stop");
    let half = groups
        .iter()
        .find(|group| !group.display().to_string().contains("unified"))
        .expect("a group");
    std::fs::create_dir_all(half).expect("what a kill can leave");
    env.engine.start(&id).await.expect("start");
    env.engine.stop(&id).await.expect("stop");
    std::fs::create_dir_all(half).expect("what a kill can leave");
    env.engine.delete(&id).await.expect("delete");
    env.finish().await;
}
