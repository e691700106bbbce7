//! A thousand sandboxes come and go, and the host is as before.

use crate::test_env::{TestEnv, small};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_sandboxes_leave_the_host_as_before() {
    let env = TestEnv::new().await;
    let mut made = 0;
    while made < 1000 {
        let batch: Vec<_> = (0..50)
            .map(|_| {
                let engine = env.engine.clone();
                tokio::spawn(async move { engine.create(&small()).await.expect("create").id })
            })
            .collect();
        let mut ids = Vec::new();
        for task in batch {
            ids.push(task.await.expect("create"));
        }
        made += ids.len();
        assert_eq!(env.out(&ids[0], "echo alive").await, "alive");
        let deletes: Vec<_> = ids
            .into_iter()
            .map(|id| {
                let engine = env.engine.clone();
                tokio::spawn(async move { engine.delete(&id).await.expect("delete") })
            })
            .collect();
        for task in deletes {
            task.await.expect("delete");
        }
    }
    // What is left on the host is looked for by `finish`: folders, claims, cgroups, processes, mounts, loop devices.
    env.finish().await;
}
