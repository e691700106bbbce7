//! A launcher without connections ends, unless somebody has to watch the disks of its sandboxes.

use crate::test_env::{TestEnv, wait_for_end};

async fn launcher_of(env: &TestEnv) -> i32 {
    env.engine.hello().await.expect("hello").launcher_pid
}

#[tokio::test]
async fn a_launcher_stays_while_disk_images_are_in_use() {
    let busy = TestEnv::new().await;
    busy.create().await;
    let launcher = launcher_of(&busy).await;
    let idle = TestEnv::new().await;
    let idle_launcher = launcher_of(&idle).await;

    let busy = busy
        .reconnect_after(async {
            // The other launcher loses its connection later, and ends all the same.
            let idle = idle.reconnect_after(async { wait_for_end(idle_launcher) });
            idle.await.finish().await;
        })
        .await;

    assert_eq!(launcher_of(&busy).await, launcher);
    busy.finish().await;
}
