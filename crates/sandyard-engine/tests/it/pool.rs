//! Ready sandboxes.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::yard::{Yard, kill, processes, ready, small, wait_for};

#[tokio::test]
async fn a_create_takes_a_ready_sandbox_and_gives_it_its_own_name_variables_and_limits() {
    let yard = Yard::new().await;
    yard.engine
        .set_pool(vec![ready("host", 2)])
        .await
        .expect("fill");
    assert_eq!(yard.engine.ready_count().await.expect("count"), 2);
    assert_eq!(
        yard.engine.list().await.expect("list"),
        [],
        "ready ones belong to nobody yet"
    );
    let mut spec = small();
    spec.env.insert("WHO".into(), "me".into());
    spec.hostname = Some("mine".into());
    spec.limits.memory_bytes = 128 << 20;
    spec.limits.pids = 64;
    let info = yard.engine.create(&spec).await.expect("create");
    assert_eq!(yard.out(&info.id, "echo $WHO $(hostname)").await, "me mine");
    assert_eq!(info.limits, spec.limits);
    assert_eq!(yard.engine.list().await.expect("list").len(), 1);
    yard.engine.set_pool(Vec::new()).await.expect("empty");
    assert_eq!(yard.engine.ready_count().await.expect("count"), 0);
    yard.finish().await;
}

/// As after a server that was killed and never came back: nobody says that it wants none any more.
#[tokio::test]
async fn a_wish_that_nobody_repeats_ends() {
    let yard = Yard::new().await;
    yard.engine
        .set_pool(vec![ready("host", 1)])
        .await
        .expect("fill");
    let wish = fs::File::options()
        .write(true)
        .open(yard.data.join("pool.json"))
        .expect("open");
    let long_ago = SystemTime::now() - Duration::from_secs(600);
    wish.set_modified(long_ago).expect("make it old");
    yard.wait_until_none_is_ready().await;
    yard.finish().await;
}

/// Eight of the usual kind and one by its name are nine of one kind.
#[tokio::test]
async fn wishes_for_the_same_kind_add_up() {
    let yard = Yard::new().await;
    let pool = vec![ready("host", 2), ready("host", 1)];
    yard.engine.set_pool(pool).await.expect("fill");
    assert_eq!(yard.engine.ready_count().await.expect("count"), 3);
    yard.finish().await;
}

/// As a server does that ends on a busy host: it cannot wait until all is done.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_the_pool_is_done_though_all_who_heard_it_die() {
    let yard = Yard::new().await;
    yard.engine
        .set_pool(vec![ready("host", 2)])
        .await
        .expect("fill");
    let filling = fs::File::open(yard.data.join("run/pool.lock")).expect("open the lock");
    filling.lock().expect("hold it, as who fills the pool does");
    let asking = tokio::spawn({
        let engine = yard.engine.clone();
        async move { engine.set_pool(Vec::new()).await }
    });
    let noted = wait_for(Duration::from_secs(120), || {
        let is_wanted = yard.data.join("pool.json").exists();
        (!is_wanted).then_some(()).ok_or("some are still wanted")
    });
    assert_eq!(noted, Ok(()), "it is noted before it is waited for");
    asking.abort();
    for pid in processes(&yard.data) {
        kill(pid);
    }
    drop(filling);
    yard.wait_until_none_is_ready().await;
    yard.finish().await;
}
