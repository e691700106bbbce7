//! A template's start program in real sandboxes.

use std::time::{Duration, Instant};

use sandyard_core::SandboxId;
use sandyard_engine::{ForkSpec, SandboxSpec};

use crate::test_env::{TestEnv, ready, small, text};

const TIMEOUT: Duration = Duration::from_secs(120);

/// Makes a template with a start program, and returns what a sandbox of it is made of.
async fn template(env: &TestEnv, program: &str, ports: &str) -> SandboxSpec {
    let id = env.create().await.id;
    let lines = format!(
        "mkdir -p /etc/sandyard && cat > /etc/sandyard/start <<'END'\n#!/bin/bash\n{program}\nEND\n\
         chmod +x /etc/sandyard/start && echo '{ports}' > /etc/sandyard/start.ports"
    );
    let made = env.sh_as(&id, "root", &lines).await;
    assert_eq!(text(&made.stderr), "");
    env.engine.snapshot(&id, "started").await.expect("keep");
    env.engine.delete(&id).await.expect("delete");
    SandboxSpec {
        template: "started".into(),
        ..small()
    }
}

/// Waits until a shell line of root's prints what is expected.
async fn until(env: &TestEnv, id: &SandboxId, line: &str, expected: &str) {
    let status_line = async {
        let give_up = Instant::now() + TIMEOUT;
        loop {
            let last = text(&env.sh_as(id, "root", line).await.stdout);
            if last == expected {
                return Ok(());
            }
            if Instant::now() >= give_up {
                return Err(last);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert_eq!(
        status_line.await,
        Ok(()),
        "`{line}` never printed `{expected}`"
    );
}

#[tokio::test]
async fn a_start_program_runs_at_every_start_and_not_after_a_pause() {
    let env = TestEnv::new().await;
    let spec = template(&env, "echo x >> /var/starts\nexec sleep 600", "").await;
    let count = "wc -l < /var/starts; pgrep -xc sleep";
    let id = env.engine.create(&spec).await.expect("create").id;
    until(&env, &id, count, "1\n1").await;
    env.engine.pause(&id).await.expect("pause");
    env.engine.resume(&id).await.expect("resume");
    until(&env, &id, count, "1\n1").await;
    env.engine.stop(&id).await.expect("stop");
    env.engine.start(&id).await.expect("start");
    until(&env, &id, count, "2\n1").await;
    let fork = env.engine.fork(&id, &ForkSpec::default()).await;
    let fork = fork.expect("fork").id;
    until(&env, &fork, count, "3\n1").await;
    until(&env, &id, count, "2\n1").await;
    env.finish().await;
}

#[tokio::test]
async fn a_ready_sandbox_runs_it_already_and_finds_its_variables_after_the_adoption() {
    let env = TestEnv::new().await;
    let program = "echo $$ > /var/pid\n\
        while sleep 0.02; do\n\
          curl -s -H \"X-Access-Token: $SANDYARD_ENVS_TOKEN\" http://127.0.0.1:49983/envs > /var/envs.new && mv /var/envs.new /var/envs\n\
        done";
    let spec = template(&env, program, "").await;
    env.engine
        .set_pool(vec![ready("started", 1)])
        .await
        .expect("fill");
    let mut spares = std::fs::read_dir(env.data.join("spares")).expect("spares");
    let spare = spares.next().expect("one").expect("an entry").file_name();
    let spare: SandboxId = spare.to_str().expect("text").parse().expect("an id");
    until(
        &env,
        &spare,
        "cat /var/pid > /dev/null && grep -c WHO /var/envs",
        "0",
    )
    .await;
    let before = text(&env.sh_as(&spare, "root", "cat /var/pid").await.stdout);
    let mut own_pid = spec.clone();
    own_pid.env.insert("WHO".into(), "me".into());
    let id = env.engine.create(&own_pid).await.expect("create").id;
    assert_eq!(id, spare, "it was adopted");
    until(
        &env,
        &id,
        "grep -o '\"WHO\":\"me\"' /var/envs",
        "\"WHO\":\"me\"",
    )
    .await;
    until(&env, &id, "cat /var/pid", &before).await;
    let refused = "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:49983/envs";
    assert_eq!(env.out(&id, refused).await, "401");
    env.finish().await;
}

#[tokio::test]
async fn a_port_of_the_start_program_is_waited_for() {
    let env = TestEnv::new().await;
    let program = "sleep 0.5\nexec /usr/bin/python3 -m http.server --bind 127.0.0.1 8765";
    let spec = template(&env, program, "8765").await;
    let id = env.engine.create(&spec).await.expect("create").id;
    let agent = env.engine.agent(&id);
    agent
        .dial(8766)
        .await
        .expect_err("nobody said it would open");
    agent.dial(8765).await.expect("opens in a moment");
    env.finish().await;
}

#[tokio::test]
async fn a_template_that_does_not_exist_is_not_kept_ready_until_it_does() {
    let env = TestEnv::new().await;
    let pool = vec![ready("started", 1), ready("host", 1)];
    env.engine.set_pool(pool).await.expect("fill");
    assert_eq!(env.engine.ready_count().await.expect("count"), 1);
    template(&env, "exec sleep 600", "").await;
    let give_up = Instant::now() + TIMEOUT;
    while env.engine.ready_count().await.expect("count") != 2 {
        assert!(Instant::now() < give_up, "it is never made");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    env.engine.remove_template("started").await.expect("remove");
    env.engine
        .set_pool(vec![ready("started", 1), ready("host", 1)])
        .await
        .expect("fill");
    assert_eq!(env.engine.ready_count().await.expect("count"), 1);
    env.finish().await;
}

#[tokio::test]
async fn one_kind_that_cannot_be_made_does_not_keep_the_others_from_being_ready() {
    let env = TestEnv::new().await;
    let mut broken = ready("host", 1);
    broken.limits.memory_bytes = u64::MAX;
    let reported = env.engine.set_pool(vec![broken, ready("host", 1)]).await;
    reported.expect_err("the first cannot be made");
    assert_eq!(env.engine.ready_count().await.expect("count"), 1);
    env.finish().await;
}
