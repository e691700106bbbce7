//! Ready sandboxes.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::test_env::{TestEnv, kill, processes, ready, small, wait_for};

#[tokio::test]
async fn a_create_takes_a_ready_sandbox_and_gives_it_its_own_name_variables_and_limits() {
    let env = TestEnv::new().await;
    env.engine
        .set_pool(vec![ready("host", 2)])
        .await
        .expect("fill");
    assert_eq!(env.engine.ready_count().await.expect("count"), 2);
    assert_eq!(
        env.engine.list().await.expect("list"),
        [],
        "ready ones belong to nobody yet"
    );
    let mut spec = small();
    spec.env.insert("WHO".into(), "me".into());
    spec.hostname = Some("mine".into());
    spec.limits.memory_bytes = 128 << 20;
    spec.limits.pids = 64;
    let info = env.engine.create(&spec).await.expect("create");
    assert_eq!(env.out(&info.id, "echo $WHO $(hostname)").await, "me mine");
    assert_eq!(info.limits, spec.limits);
    assert_eq!(env.engine.list().await.expect("list").len(), 1);
    env.engine.set_pool(Vec::new()).await.expect("empty");
    assert_eq!(env.engine.ready_count().await.expect("count"), 0);
    env.finish().await;
}

/// As after a server that was killed and never came back: nobody says that it wants none any more.
#[tokio::test]
async fn pool_settings_that_are_not_repeated_expire() {
    let env = TestEnv::new().await;
    env.engine
        .set_pool(vec![ready("host", 1)])
        .await
        .expect("fill");
    let settings = fs::File::options()
        .write(true)
        .open(env.data.join("pool.json"))
        .expect("open");
    let long_ago = SystemTime::now() - Duration::from_secs(600);
    settings.set_modified(long_ago).expect("make it old");
    env.wait_until_none_is_ready().await;
    env.finish().await;
}

/// The folder it would be put into on its way out is in the way.
#[tokio::test]
async fn a_spare_that_cannot_be_deleted_blocks_nothing_and_is_deleted_later() {
    let env = TestEnv::new().await;
    let pool = vec![ready("host", 1)];
    env.engine.set_pool(pool).await.expect("fill");
    let (id, pid) = spare(&env);
    let blocker = env.data.join("trash").join(&id).join("in/the/way");
    kill(pid);
    fs::create_dir_all(&blocker).expect("make");
    let info = env.engine.create(&small()).await.expect("create");
    assert_ne!(info.id.as_str(), id);
    assert_eq!(env.out(&info.id, "echo here").await, "here");
    env.engine.set_pool(Vec::new()).await.ok();
    is_gone(&env, &id);
    env.finish().await;
}

/// It may know the secrets of its intended owner.
#[tokio::test]
async fn a_spare_whose_adoption_was_killed_is_not_adopted_again() {
    let env = TestEnv::new().await;
    let pool = vec![ready("host", 1)];
    env.engine.set_pool(pool.clone()).await.expect("fill");
    let (id, _) = spare(&env);
    fs::write(env.data.join("spares").join(&id), "").expect("write");
    let info = env.engine.create(&small()).await.expect("create");
    assert_ne!(info.id.as_str(), id);
    env.engine.set_pool(pool).await.expect("fill");
    env.engine.sweep().await.expect("sweep");
    is_gone(&env, &id);
    assert_ne!(spare(&env).0, id);
    env.finish().await;
}

fn is_gone(env: &TestEnv, id: &str) {
    let leftovers_ = wait_for(Duration::from_secs(120), || {
        let folders = ["sandboxes", "spares"].map(|folder| env.data.join(folder).join(id));
        let leftovers_: Vec<_> = folders.iter().filter(|path| path.exists()).collect();
        leftovers_
            .is_empty()
            .then_some(())
            .ok_or_else(|| format!("{leftovers_:?}"))
    });
    assert_eq!(leftovers_, Ok(()));
}

/// The one that is ready: its name, and its first process.
fn spare(env: &TestEnv) -> (String, i32) {
    let mut spares = fs::read_dir(env.data.join("spares")).expect("spares");
    let spare = spares.next().expect("one").expect("an entry").file_name();
    let id = spare.into_string().expect("text");
    let record = fs::read(env.data.join("sandboxes").join(&id).join("state.json"));
    let record: serde_json::Value =
        serde_json::from_slice(&record.expect("a record")).expect("JSON");
    let pid = record["init"]["pid"].as_i64().expect("a process");
    (id, pid.try_into().expect("a process id"))
}

/// As many creates as there are ready ones, and more: each is taken once.
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_never_get_the_same() {
    let env = TestEnv::new().await;
    let pool = vec![ready("host", 4)];
    env.engine.set_pool(pool).await.expect("fill");
    let creates = (0..10).map(|number| {
        let engine = env.engine.clone();
        let sweeper = env.engine.clone();
        let mut spec = small();
        spec.env.insert("WHO".into(), number.to_string());
        tokio::spawn(async move {
            // A sweep inspects each of them meanwhile.
            let (info, swept) = tokio::join!(engine.create(&spec), sweeper.sweep());
            swept.expect("sweep");
            (info.expect("create").id, number)
        })
    });
    let mut ids = std::collections::BTreeSet::new();
    for create in creates.collect::<Vec<_>>() {
        let (id, number) = create.await.expect("join");
        assert_eq!(env.out(&id, "echo $WHO").await, number.to_string());
        assert!(ids.insert(id));
    }
    assert_eq!(env.engine.list().await.expect("list").len(), 10);
    env.finish().await;
}

/// Eight of the usual kind and one by its name are nine of one kind.
#[tokio::test]
async fn counts_of_the_same_kind_add_up() {
    let env = TestEnv::new().await;
    let pool = vec![ready("host", 2), ready("host", 1)];
    env.engine.set_pool(pool).await.expect("fill");
    assert_eq!(env.engine.ready_count().await.expect("count"), 3);
    env.finish().await;
}

/// As a server does that ends on a busy host: it cannot wait until all is done.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_the_pool_is_done_though_all_who_heard_it_die() {
    let env = TestEnv::new().await;
    env.engine
        .set_pool(vec![ready("host", 2)])
        .await
        .expect("fill");
    let filling = fs::File::open(env.data.join("run/pool.lock")).expect("open the lock");
    filling.lock().expect("hold it, as who fills the pool does");
    let asking = tokio::spawn({
        let engine = env.engine.clone();
        async move { engine.set_pool(Vec::new()).await }
    });
    let noted = wait_for(Duration::from_secs(120), || {
        let is_wanted = env.data.join("pool.json").exists();
        (!is_wanted).then_some(()).ok_or("some are still wanted")
    });
    assert_eq!(noted, Ok(()), "it is noted before it is waited for");
    asking.abort();
    for pid in processes(&env.data) {
        kill(pid);
    }
    drop(filling);
    env.wait_until_none_is_ready().await;
    env.finish().await;
}
