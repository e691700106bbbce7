//! MultiProvider servers on one store.

use sandyard_core::SandboxStatus;
use sandyard_provider::Verb;

use crate::harness::{TestEnv, alice, request_with_timeout};

#[tokio::test]
async fn a_timer_fires_once_however_many_servers_there_are() {
    let env = TestEnv::new().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let sandbox = env
            .service
            .create(&alice(), request_with_timeout(10))
            .await
            .unwrap();
        ids.push(sandbox.id);
    }
    let servers = [
        env.service.clone(),
        env.second_server().await,
        env.second_server().await,
    ];
    // Ten seconds, and the slack that servers give each other.
    env.clock.advance_ms(16_000);
    let mut tasks = tokio::task::JoinSet::new();
    for server in servers {
        tasks.spawn(async move { server.sweep().await.unwrap() });
    }
    tasks.join_all().await;
    for id in ids {
        assert_eq!(env.row(&id).await.status, SandboxStatus::Paused);
        let kinds = env.event_kinds(&id).await;
        assert_eq!(kinds, ["created", "running", "paused"]);
    }
    assert_eq!(env.provider.count(Verb::Pause), 20);
}

#[tokio::test]
async fn what_one_server_makes_another_uses_and_ends() {
    let env = TestEnv::new().await;
    let other = env.second_server().await;
    let sandbox = env.create().await;
    other
        .pause(&alice(), sandbox.id.as_str(), None)
        .await
        .unwrap();
    env.service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    other.delete(&alice(), sandbox.id.as_str()).await.unwrap();
    assert!(
        env.service
            .live(&alice(), sandbox.id.as_str())
            .await
            .is_err()
    );
}
