//! Memory, processes, disk and processor: a sandbox gets its share and no more, and neighbours do not notice.

use crate::test_env::{TestEnv, small};

#[tokio::test]
async fn a_memory_hog_is_killed_and_its_sandbox_lives_on() {
    let env = TestEnv::new().await;
    let mut spec = small();
    spec.limits.memory_bytes = 64 << 20;
    let id = env.engine.create(&spec).await.expect("create").id;
    let hog = env.sh(&id, "python3 -c 'x = bytearray(512 << 20)'").await;
    assert_ne!(hog.exit.exit_code, 0);
    assert_eq!(env.out(&id, "echo alive").await, "alive");
    assert!(
        env.engine
            .stats(&id)
            .await
            .expect("stats")
            .memory_bytes
            .is_some_and(|bytes| bytes <= 64 << 20)
    );
    env.finish().await;
}

#[tokio::test]
async fn a_disk_filler_meets_its_limit_and_the_space_comes_back() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let filled = env
        .sh(
            &id,
            "dd if=/dev/zero of=~/big bs=1M count=1000 2>&1 | tail -n 9; stat -c %s ~/big",
        )
        .await;
    let output = String::from_utf8_lossy(&filled.stdout).into_owned();
    assert!(output.contains("No space left on device"), "{output}");
    let size: u64 = output
        .lines()
        .last()
        .and_then(|line| line.parse().ok())
        .expect("a size");
    assert!(size < 64 << 20, "{size} bytes fit into 64 MiB");
    assert_eq!(
        env.out(&id, "rm ~/big && echo small > ~/small && cat ~/small")
            .await,
        "small"
    );
    env.finish().await;
}

#[tokio::test]
async fn a_fork_bomb_stops_at_the_process_limit_while_a_neighbour_answers() {
    let env = TestEnv::new().await;
    let (bomb, neighbour) = (env.create().await.id, env.create().await.id);
    env.sh(&bomb, "(bomb() { bomb | bomb & }; bomb) >/dev/null 2>&1 &")
        .await;
    for _ in 0..20 {
        assert_eq!(env.out(&neighbour, "echo fine").await, "fine");
        let pids = env
            .engine
            .stats(&bomb)
            .await
            .expect("stats")
            .pids
            .expect("a count");
        assert!(pids <= 128, "{pids} processes");
    }
    env.engine
        .delete(&bomb)
        .await
        .expect("a bombed sandbox can be deleted");
    env.finish().await;
}

#[tokio::test]
async fn a_busy_loop_gets_its_share_of_the_processor() {
    let env = TestEnv::new().await;
    let mut spec = small();
    spec.limits.cpu_millis = 200;
    let id = env.engine.create(&spec).await.expect("create").id;
    env.sh(
        &id,
        "for i in 1 2 3 4; do (while :; do :; done) >/dev/null 2>&1 & done",
    )
    .await;
    let begin = (
        std::time::Instant::now(),
        env.engine
            .stats(&id)
            .await
            .expect("stats")
            .cpu_usage_us
            .expect("a count"),
    );
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let used = env
        .engine
        .stats(&id)
        .await
        .expect("stats")
        .cpu_usage_us
        .expect("a count")
        - begin.1;
    let share = used as f64 / begin.0.elapsed().as_micros() as f64;
    // The kernel accounts in slices of 100 ms: a little more than the share can pass in a short time.
    assert!(
        share < 0.35,
        "used {share:.2} of one core with a limit of 0.2"
    );
    env.finish().await;
}

#[tokio::test]
async fn a_sandbox_is_in_its_group_in_every_hierarchy() {
    let env = TestEnv::new().await;
    let info = env.create().await;
    let pid = info.init.expect("a live sandbox").pid.to_string();
    let groups = crate::test_env::cgroups(&env.data);
    assert!(!groups.is_empty());
    for group in groups {
        let procs = std::fs::read_to_string(group.join("cgroup.procs")).expect("processes");
        assert!(
            procs.lines().any(|line| line == pid),
            "{pid} is not in {}",
            group.display()
        );
    }
    env.finish().await;
}
