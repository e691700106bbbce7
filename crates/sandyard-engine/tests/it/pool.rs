//! Ready sandboxes.

use sandyard_engine::PoolSpec;

use crate::yard::{Yard, small};

#[tokio::test]
async fn a_create_takes_a_ready_sandbox_and_gives_it_its_own_name_variables_and_limits() {
    let yard = Yard::new().await;
    let wanted = PoolSpec {
        template: "host".into(),
        limits: small().limits,
        count: 2,
    };
    yard.engine.set_pool(vec![wanted]).await.expect("fill");
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
