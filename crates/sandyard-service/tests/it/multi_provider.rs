//! A service over several providers, and time that stands still.

use std::sync::Arc;

use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::{Caller, Clock, SandboxId};
use sandyard_provider::prelude::*;
use sandyard_provider_fake::FakeProvider;
use sandyard_service::{
    CreateRequest, Event, EventFilter, Sandbox, Service, ServiceError, ServiceSettings,
};
use sandyard_store::{Store, Timers};

use crate::harness::alice;

const BEGIN_MS: i64 = 1_800_000_000_000;

/// `embedded`, the default, `docker` and `e2b`, each with a memory default of its own.
pub(crate) struct MultiProvider {
    pub(crate) service: Service,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) embedded: FakeProvider,
    pub(crate) docker: FakeProvider,
    pub(crate) e2b: FakeProvider,
}

impl MultiProvider {
    pub(crate) async fn new(settings: ServiceSettings) -> Self {
        let clock = Clock::manual(BEGIN_MS);
        let fake = |name: &str, memory_bytes| {
            let agent = AgentClient::new(Endpoint::Unix("/nonexistent/agent.sock".into()));
            let fake = FakeProvider::new().with_clock(clock.clone());
            fake.with_agent(agent).with_info(|info| {
                info.name = name.to_owned();
                info.location = format!("{name}:1");
                info.default_limits.memory_bytes = memory_bytes;
            })
        };
        let (embedded, docker, e2b) = (
            fake("embedded", 1 << 30),
            fake("docker", 2 << 30),
            fake("e2b", 3 << 30),
        );
        let store = Store::open("sqlite::memory:")
            .await
            .expect("the test environment works");
        Self::over(store, clock, [embedded, docker, e2b], settings).await
    }

    /// With `docker` and then `e2b` as those who are asked instead.
    pub(crate) async fn with_fallback() -> Self {
        Self::new(fallback(["docker", "e2b"])).await
    }

    /// The same with other providers, in the same order.
    pub(crate) async fn over(
        store: Store,
        clock: Clock,
        [embedded, docker, e2b]: [FakeProvider; 3],
        settings: ServiceSettings,
    ) -> Self {
        let timers = Timers::open(store.clone(), None, clock.clone());
        let timers = timers.await.expect("the test environment works");
        let providers: Vec<Arc<dyn Provider>> = [&embedded, &docker, &e2b]
            .map(|fake| Arc::new(fake.clone()) as Arc<dyn Provider>)
            .into();
        let service = Service::open(store.clone(), timers, providers, settings, clock.clone());
        Self {
            service: service.await.expect("the test environment works"),
            store,
            clock,
            embedded,
            docker,
            e2b,
        }
    }

    /// Another server on the same store and providers.
    pub(crate) async fn second_server(&self, settings: ServiceSettings) -> Self {
        let fakes = [&self.embedded, &self.docker, &self.e2b].map(Clone::clone);
        Self::over(self.store.clone(), self.clock.clone(), fakes, settings).await
    }

    pub(crate) async fn create(&self, request: CreateRequest) -> Result<Sandbox, ServiceError> {
        self.service.create(&alice(), request).await
    }

    pub(crate) async fn row(&self, id: &SandboxId) -> Sandbox {
        self.store
            .sandbox(id)
            .await
            .expect("the test environment works")
            .expect("the test environment works")
    }

    /// How many instances each has.
    pub(crate) fn instances(&self) -> [usize; 3] {
        [&self.embedded, &self.docker, &self.e2b].map(|fake| fake.instances().len())
    }

    /// Lets time pass, and the background catch up.
    pub(crate) async fn pass(&self, by_ms: i64) {
        self.clock.advance_ms(by_ms);
        self.service
            .sweep()
            .await
            .expect("the test environment works");
    }

    /// Lets everybody notice who can be reached.
    pub(crate) async fn notice(&self) {
        self.service.check_providers().await;
        self.service.check_providers().await;
    }

    pub(crate) async fn events(&self, id: &SandboxId) -> Vec<Event> {
        let filter = EventFilter {
            sandbox_id: Some(id.clone()),
            ..EventFilter::default()
        };
        let events = self.service.events(&Caller::system(), filter).await;
        events.expect("the test environment works")
    }
}

pub(crate) fn fallback<const N: usize>(names: [&str; N]) -> ServiceSettings {
    ServiceSettings {
        fallback: names.map(str::to_owned).into(),
        ..ServiceSettings::default()
    }
}

/// A request for a sandbox with a provider.
pub(crate) fn with(provider: &str) -> CreateRequest {
    CreateRequest {
        provider: Some(provider.to_owned()),
        ..CreateRequest::default()
    }
}

/// A request for a sandbox from a template.
pub(crate) fn from(template: &str) -> CreateRequest {
    CreateRequest {
        template: Some(template.to_owned()),
        ..CreateRequest::default()
    }
}
