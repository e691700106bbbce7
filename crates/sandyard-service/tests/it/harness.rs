//! A service with everything around it, and time that stands still.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::network::{NetworkGrant, NetworkPolicy};
use sandyard_core::{Caller, Clock, Role, SandboxId, Scope};
use sandyard_provider::prelude::*;
use sandyard_provider_fake::FakeProvider;
use sandyard_service::{
    CreateRequest, Event, EventFilter, NodeSetup, Sandbox, Service, ServiceSettings,
};
use sandyard_store::{Store, Timers};

pub(crate) const HOUR_MS: i64 = 3_600_000;

/// Where the test's clock starts.
const BEGIN_MS: i64 = 1_800_000_000_000;

pub(crate) struct TestEnv {
    pub(crate) service: Service,
    pub(crate) store: Store,
    pub(crate) provider: FakeProvider,
    pub(crate) clock: Clock,
}

impl TestEnv {
    pub(crate) async fn new() -> Self {
        Self::with(ServiceSettings::default()).await
    }

    /// One that keeps the output of commands.
    pub(crate) async fn with_logs(folder: &Path) -> Self {
        Self::with(ServiceSettings {
            log_folder: Some(folder.to_owned()),
            ..ServiceSettings::default()
        })
        .await
    }

    pub(crate) async fn with(settings: ServiceSettings) -> Self {
        let clock = Clock::manual(BEGIN_MS);
        let agent = AgentClient::new(Endpoint::Unix("/nonexistent/agent.sock".into()));
        let provider = FakeProvider::new()
            .with_clock(clock.clone())
            .with_agent(agent);
        let store = Store::open("sqlite::memory:")
            .await
            .expect("the test environment works");
        Self::on(store, provider, clock, settings).await
    }

    /// On a database in a file.
    pub(crate) async fn in_file(path: &Path, settings: ServiceSettings) -> Self {
        let clock = Clock::manual(BEGIN_MS);
        let provider = FakeProvider::new().with_clock(clock.clone());
        let store = Store::open(&format!("sqlite://{}", path.display()))
            .await
            .expect("the test environment works");
        Self::on(store, provider, clock, settings).await
    }

    /// The same with another provider.
    pub(crate) async fn over(self, provider: FakeProvider) -> Self {
        let settings = ServiceSettings::default();
        Self::on(self.store, provider, self.clock, settings).await
    }

    async fn on(
        store: Store,
        provider: FakeProvider,
        clock: Clock,
        settings: ServiceSettings,
    ) -> Self {
        let service = open(&store, &provider, &clock, settings).await;
        Self {
            service,
            store,
            provider,
            clock,
        }
    }

    /// One that keeps secrets.
    pub(crate) async fn with_key() -> Self {
        Self::with(key_settings()).await
    }

    /// Another server on the same store and provider.
    pub(crate) async fn second_server(&self) -> Service {
        self.second_server_with(ServiceSettings::default()).await
    }

    /// Another server on the same store and provider, with settings of its own.
    pub(crate) async fn second_server_with(&self, settings: ServiceSettings) -> Service {
        open(&self.store, &self.provider, &self.clock, settings).await
    }

    /// Another server in a slot of its own.
    pub(crate) async fn second_server_as(&self, node: NodeSetup) -> Service {
        let timers = Timers::open(self.store.clone(), None, self.clock.clone())
            .await
            .expect("the test environment works");
        let providers: Vec<Arc<dyn Provider>> = vec![Arc::new(self.provider.clone())];
        let settings = ServiceSettings::default();
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Service::open_as(node, store, timers, providers, settings, clock)
            .await
            .expect("the test environment works")
    }

    pub(crate) async fn create(&self) -> Sandbox {
        self.service
            .create(&alice(), CreateRequest::default())
            .await
            .expect("the test environment works")
    }

    pub(crate) async fn make(&self, request: CreateRequest) -> Sandbox {
        let made = self.service.create(&alice(), request).await;
        made.expect("the test environment works")
    }

    /// What a sandbox was given to reach, once it was.
    pub(crate) async fn grant(&self, sandbox: &Sandbox) -> NetworkGrant {
        let id = sandbox.provider_id.as_deref().expect("it has an instance");
        until(|| self.provider.grant(id).is_some()).await;
        self.provider.grant(id).expect("it is there")
    }

    pub(crate) async fn row(&self, id: &SandboxId) -> Sandbox {
        self.store
            .sandbox(id)
            .await
            .expect("the store answers")
            .expect("the row is there")
    }

    /// Lets time pass, and the background catch up.
    pub(crate) async fn pass(&self, by_ms: i64) {
        self.service.flush().await;
        self.clock.advance_ms(by_ms);
        self.service
            .sweep()
            .await
            .expect("the test environment works");
    }

    pub(crate) async fn events(&self, id: &SandboxId) -> Vec<Event> {
        let filter = EventFilter {
            sandbox_id: Some(id.clone()),
            ..EventFilter::default()
        };
        self.service
            .events(&Caller::system(), filter)
            .await
            .expect("the test environment works")
    }

    pub(crate) async fn event_kinds(&self, id: &SandboxId) -> Vec<String> {
        self.events(id)
            .await
            .into_iter()
            .map(|event| event.kind)
            .collect()
    }
}

async fn open(
    store: &Store,
    provider: &FakeProvider,
    clock: &Clock,
    settings: ServiceSettings,
) -> Service {
    let timers = Timers::open(store.clone(), None, clock.clone())
        .await
        .expect("the test environment works");
    Service::open(
        store.clone(),
        timers,
        vec![Arc::new(provider.clone())],
        settings,
        clock.clone(),
    )
    .await
    .expect("the test environment works")
}

/// Waits until a condition is true.
pub(crate) async fn until(mut is_met: impl FnMut() -> bool) {
    let waiting = async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(120), waiting).await;
    done.expect("it becomes so");
}

/// Settings with a key to seal with.
pub(crate) fn key_settings() -> ServiceSettings {
    ServiceSettings {
        sealing_key: Some([7; 32]),
        ..ServiceSettings::default()
    }
}

/// A policy from its JSON.
pub(crate) fn policy(json: serde_json::Value) -> NetworkPolicy {
    NetworkPolicy::from_value(json).expect("a policy")
}

pub(crate) fn admin() -> Caller {
    Caller {
        role: Role::Admin,
        ..user("root")
    }
}

pub(crate) fn user(name: &str) -> Caller {
    Caller {
        name: name.to_owned(),
        role: Role::User,
        scopes: vec![Scope::Read, Scope::Use, Scope::Manage],
        via: "test".to_owned(),
    }
}

pub(crate) fn alice() -> Caller {
    user("alice")
}

pub(crate) fn request_with_timeout(seconds: u64) -> CreateRequest {
    CreateRequest {
        timeout: Some(Duration::from_secs(seconds)),
        ..CreateRequest::default()
    }
}
