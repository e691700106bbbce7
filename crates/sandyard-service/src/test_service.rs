//! A service over a database in memory and the fake provider, for unit tests.

use std::sync::Arc;

use sandyard_core::{Caller, Clock, SandboxId};
use sandyard_provider_fake::FakeProvider;
use sandyard_store::{Store, Timers};

use crate::request::CreateRequest;
use crate::service::Service;
use crate::settings::ServiceSettings;

/// A service whose clock stands still.
pub(crate) async fn test_service(settings: ServiceSettings) -> Service {
    let clock = Clock::manual(1_800_000_000_000);
    let provider = FakeProvider::new().with_clock(clock.clone());
    let store = Store::open("sqlite::memory:").await.unwrap();
    let timers = Timers::open(store.clone(), None, clock.clone());
    let timers = timers.await.unwrap();
    Service::open(store, timers, vec![Arc::new(provider)], settings, clock)
        .await
        .unwrap()
}

/// Creates a sandbox with default settings.
pub(crate) async fn create(service: &Service) -> SandboxId {
    let caller = Caller::system();
    let created = service.create(&caller, CreateRequest::default());
    created.await.unwrap().id
}
