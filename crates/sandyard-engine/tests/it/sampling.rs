//! Reading what sandboxes use, past the launcher.

use crate::test_env::{TestEnv, small};

#[tokio::test]
async fn a_sampler_reads_what_the_launcher_tells() {
    let env = TestEnv::new().await;
    let mut spec = small();
    spec.limits.disk_bytes = 256 << 20;
    let id = env.engine.create(&spec).await.expect("create").id;
    let sampler = env.engine.sampler();
    let first = sampler.sample(&id, None).expect("it runs");
    let busy = "dd if=/dev/urandom of=file bs=1M count=40 conv=fsync 2>/dev/null; for i in {1..200000}; do :; done";
    env.sh(&id, busy).await;
    let second = sampler.sample(&id, Some(&first)).expect("it runs");
    assert!(second.cpu_usage_us() > first.cpu_usage_us());
    // Not all 40: the image has the blocks of files that are gone, and uses them again.
    assert!(second.disk_bytes() >= first.disk_bytes() + (32 << 20));
    assert!(second.cache_bytes() > first.cache_bytes());
    let stats = env.engine.stats(&id).await.expect("stats");
    assert!(
        stats
            .cpu_usage_us
            .is_some_and(|us| us >= second.cpu_usage_us())
    );
    let memory = stats.memory_bytes.expect("counted here");
    let sampled = second.memory_bytes() + second.cache_bytes();
    assert!(
        memory.abs_diff(sampled) < 16 << 20,
        "{memory} and {sampled}"
    );
    env.engine.pause(&id).await.expect("pause");
    let third = sampler.sample(&id, Some(&second)).expect("paused");
    let fourth = sampler.sample(&id, Some(&third)).expect("paused");
    // One that stands still may have had a last step to do in the kernel.
    assert!(fourth.cpu_usage_us() - third.cpu_usage_us() < 1000);
    env.engine.stop(&id).await.expect("stop");
    assert!(sampler.sample(&id, None).is_none(), "no processes");
    env.engine.delete(&id).await.expect("delete");
    assert!(sampler.sample(&id, Some(&third)).is_none(), "gone");
    env.finish().await;
}
