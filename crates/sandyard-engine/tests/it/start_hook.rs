//! A template's start program in real sandboxes.

use std::time::{Duration, Instant};

use sandyard_core::SandboxId;
use sandyard_engine::{ForkSpec, SandboxSpec};

use crate::yard::{Yard, ready, small, text};

const PATIENCE: Duration = Duration::from_secs(120);

/// Makes a template with a start program, and returns what a sandbox of it is made of.
async fn template(yard: &Yard, program: &str, ports: &str) -> SandboxSpec {
    let id = yard.create().await.id;
    let lines = format!(
        "mkdir -p /etc/sandyard && cat > /etc/sandyard/start <<'END'\n#!/bin/bash\n{program}\nEND\n\
         chmod +x /etc/sandyard/start && echo '{ports}' > /etc/sandyard/start.ports"
    );
    let made = yard.sh_as(&id, "root", &lines).await;
    assert_eq!(text(&made.stderr), "");
    yard.engine.snapshot(&id, "started").await.expect("keep");
    yard.engine.delete(&id).await.expect("delete");
    SandboxSpec {
        template: "started".into(),
        ..small()
    }
}

/// Waits until a shell line of root's prints what is expected.
async fn until(yard: &Yard, id: &SandboxId, line: &str, expected: &str) {
    let look = async {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let last = text(&yard.sh_as(id, "root", line).await.stdout);
            if last == expected {
                return Ok(());
            }
            if Instant::now() >= give_up {
                return Err(last);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert_eq!(look.await, Ok(()), "`{line}` never printed `{expected}`");
}

#[tokio::test]
async fn a_start_program_runs_at_every_start_and_not_after_a_pause() {
    let yard = Yard::new().await;
    let spec = template(&yard, "echo x >> /var/starts\nexec sleep 600", "").await;
    let count = "wc -l < /var/starts; pgrep -xc sleep";
    let id = yard.engine.create(&spec).await.expect("create").id;
    until(&yard, &id, count, "1\n1").await;
    yard.engine.pause(&id).await.expect("pause");
    yard.engine.resume(&id).await.expect("resume");
    until(&yard, &id, count, "1\n1").await;
    yard.engine.stop(&id).await.expect("stop");
    yard.engine.start(&id).await.expect("start");
    until(&yard, &id, count, "2\n1").await;
    let fork = yard.engine.fork(&id, &ForkSpec::default()).await;
    let fork = fork.expect("fork").id;
    until(&yard, &fork, count, "3\n1").await;
    until(&yard, &id, count, "2\n1").await;
    yard.finish().await;
}

#[tokio::test]
async fn a_ready_sandbox_runs_it_already_and_finds_its_variables_after_the_adoption() {
    let yard = Yard::new().await;
    let program = "echo $$ > /var/pid\n\
        while sleep 0.02; do\n\
          curl -s -H \"X-Access-Token: $SANDYARD_ENVS_TOKEN\" http://127.0.0.1:49983/envs > /var/envs.new && mv /var/envs.new /var/envs\n\
        done";
    let spec = template(&yard, program, "").await;
    yard.engine
        .set_pool(vec![ready("started", 1)])
        .await
        .expect("fill");
    let mut spares = std::fs::read_dir(yard.data.join("spares")).expect("spares");
    let spare = spares.next().expect("one").expect("an entry").file_name();
    let spare: SandboxId = spare.to_str().expect("text").parse().expect("an id");
    until(
        &yard,
        &spare,
        "cat /var/pid > /dev/null && grep -c WHO /var/envs",
        "0",
    )
    .await;
    let before = text(&yard.sh_as(&spare, "root", "cat /var/pid").await.stdout);
    let mut mine = spec.clone();
    mine.env.insert("WHO".into(), "me".into());
    let id = yard.engine.create(&mine).await.expect("create").id;
    assert_eq!(id, spare, "it was adopted");
    until(
        &yard,
        &id,
        "grep -o '\"WHO\":\"me\"' /var/envs",
        "\"WHO\":\"me\"",
    )
    .await;
    until(&yard, &id, "cat /var/pid", &before).await;
    let refused = "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:49983/envs";
    assert_eq!(yard.out(&id, refused).await, "401");
    yard.finish().await;
}

#[tokio::test]
async fn a_port_of_the_start_program_is_waited_for() {
    let yard = Yard::new().await;
    let program = "sleep 0.5\nexec /usr/bin/python3 -m http.server --bind 127.0.0.1 8765";
    let spec = template(&yard, program, "8765").await;
    let id = yard.engine.create(&spec).await.expect("create").id;
    let agent = yard.engine.agent(&id);
    agent
        .dial(8766)
        .await
        .expect_err("nobody said it would open");
    agent.dial(8765).await.expect("opens in a moment");
    yard.finish().await;
}

#[tokio::test]
async fn a_template_that_does_not_exist_is_not_kept_ready_until_it_does() {
    let yard = Yard::new().await;
    let pool = vec![ready("started", 1), ready("host", 1)];
    yard.engine.set_pool(pool).await.expect("fill");
    assert_eq!(yard.engine.ready_count().await.expect("count"), 1);
    template(&yard, "exec sleep 600", "").await;
    let give_up = Instant::now() + PATIENCE;
    while yard.engine.ready_count().await.expect("count") != 2 {
        assert!(Instant::now() < give_up, "it is never made");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    yard.engine
        .remove_template("started")
        .await
        .expect("remove");
    yard.engine
        .set_pool(vec![ready("started", 1), ready("host", 1)])
        .await
        .expect("fill");
    assert_eq!(yard.engine.ready_count().await.expect("count"), 1);
    yard.finish().await;
}

#[tokio::test]
async fn one_kind_that_cannot_be_made_does_not_keep_the_others_from_being_ready() {
    let yard = Yard::new().await;
    let mut broken = ready("host", 1);
    broken.limits.memory_bytes = u64::MAX;
    let told = yard.engine.set_pool(vec![broken, ready("host", 1)]).await;
    told.expect_err("the first cannot be made");
    assert_eq!(yard.engine.ready_count().await.expect("count"), 1);
    yard.finish().await;
}
