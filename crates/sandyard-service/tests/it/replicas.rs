//! Several servers on one store.

use sandyard_core::SandboxStatus;
use sandyard_provider::Verb;

use crate::harness::{Yard, alice, request_with_timeout};

#[tokio::test]
async fn a_timer_fires_once_however_many_servers_there_are() {
    let yard = Yard::new().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let sandbox = yard
            .service
            .create(&alice(), request_with_timeout(10))
            .await
            .unwrap();
        ids.push(sandbox.id);
    }
    let servers = [
        yard.service.clone(),
        yard.another().await,
        yard.another().await,
    ];
    // Ten seconds, and the slack that servers give each other.
    yard.clock.advance_ms(16_000);
    let mut tasks = tokio::task::JoinSet::new();
    for server in servers {
        tasks.spawn(async move { server.sweep().await.unwrap() });
    }
    tasks.join_all().await;
    for id in ids {
        assert_eq!(yard.row(&id).await.status, SandboxStatus::Paused);
        let kinds = yard.event_kinds(&id).await;
        assert_eq!(kinds, ["created", "running", "paused"]);
    }
    assert_eq!(yard.provider.count(Verb::Pause), 20);
}

#[tokio::test]
async fn what_one_server_makes_another_uses_and_ends() {
    let yard = Yard::new().await;
    let other = yard.another().await;
    let sandbox = yard.create().await;
    other
        .pause(&alice(), sandbox.id.as_str(), None)
        .await
        .unwrap();
    yard.service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    other.delete(&alice(), sandbox.id.as_str()).await.unwrap();
    assert!(
        yard.service
            .live(&alice(), sandbox.id.as_str())
            .await
            .is_err()
    );
}
