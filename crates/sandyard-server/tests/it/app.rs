//! A server for one test, and those who use it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use sandyard_auth::{Auth, AuthConfig};
use sandyard_core::{Clock, Role, Scope};
use sandyard_provider::prelude::*;
use sandyard_provider_fake::FakeProvider;
use sandyard_server::{App, Listener, ServerSettings, router};
use sandyard_service::{Service, ServiceSettings};
use sandyard_store::{Store, Timers};
use serde_json::Value;
use tower::ServiceExt;

/// Where the clock stands at the beginning.
const START_MS: i64 = 1_767_225_600_000;
/// What everybody's password is.
pub(crate) const PASSWORD: &str = "TestPass123!";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    Anonymous,
    WrongKey,
    Expired,
    Alice,
    Bob,
    Admin,
}

/// Where requests come in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// An address others reach.
    Network,
    /// Loopback.
    Loopback,
}

pub(crate) struct TestApp {
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) provider: FakeProvider,
    pub(crate) clock: Clock,
    keys: [String; 4],
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }
}

impl TestApp {
    pub(crate) async fn new() -> Self {
        Self::with(FakeProvider::new(), ServerSettings::default()).await
    }

    pub(crate) async fn with(provider: FakeProvider, settings: ServerSettings) -> Self {
        Self::with_several(vec![provider], ServiceSettings::default(), settings).await
    }

    /// With several providers, the first of them the default.
    pub(crate) async fn with_several(
        providers: Vec<FakeProvider>,
        service: ServiceSettings,
        settings: ServerSettings,
    ) -> Self {
        let clock = Clock::manual(START_MS);
        let providers: Vec<_> = providers
            .into_iter()
            .map(|provider| provider.with_clock(clock.clone()))
            .collect();
        let provider = providers[0].clone();
        let several = providers
            .into_iter()
            .map(|provider| Arc::new(provider) as Arc<dyn Provider>);
        let store = Store::open("sqlite::memory:").await.unwrap();
        let timers = Timers::open(store.clone(), None, clock.clone())
            .await
            .unwrap();
        let service = Service::open(
            store.clone(),
            timers.clone(),
            several.collect(),
            ServiceSettings {
                sealing_key: Some([7; 32]),
                ..service
            },
            clock.clone(),
        )
        .await
        .unwrap();
        let config = AuthConfig {
            password_memory_kib: 64,
            ..AuthConfig::default()
        };
        let auth = Auth::open(store.clone(), clock.clone(), config)
            .await
            .unwrap();
        let keys = people(&auth, &clock).await;
        let app = App::new(service, auth, store, timers, settings);
        Self {
            router: router::router(app.clone()),
            app,
            provider,
            clock,
            keys,
        }
    }

    pub(crate) fn key(&self, actor: Actor) -> Option<&str> {
        match actor {
            Actor::Anonymous => None,
            Actor::WrongKey => Some("e2b_0000000000000000000000000000000000000000"),
            Actor::Expired => Some(&self.keys[3]),
            Actor::Alice => Some(&self.keys[0]),
            Actor::Bob => Some(&self.keys[1]),
            Actor::Admin => Some(&self.keys[2]),
        }
    }

    /// Sends a request as it is; the head of the answer only.
    pub(crate) async fn send_head(
        &self,
        at: At,
        mut request: Request<Body>,
    ) -> axum::response::Response {
        let address: SocketAddr = match at {
            At::Network => "192.0.2.1:8100".parse().unwrap(),
            At::Loopback => "127.0.0.1:8100".parse().unwrap(),
        };
        request.extensions_mut().insert(Listener {
            address,
            is_tls: false,
            is_e2b: false,
            peer: "192.0.2.9:5555".parse().unwrap(),
        });
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, at: At, request: Request<Body>) -> Answer {
        let response = self.send_head(at, request).await;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 64 << 20).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Asks for something.
    pub(crate) async fn get(&self, actor: Actor, path: &str) -> Answer {
        self.ask(actor, "GET", path, None).await
    }

    /// Posts JSON.
    pub(crate) async fn post(&self, actor: Actor, path: &str, body: Value) -> Answer {
        self.ask(actor, "POST", path, Some(body)).await
    }

    pub(crate) async fn ask(
        &self,
        actor: Actor,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        self.send(At::Network, self.request(actor, method, path, body))
            .await
    }

    pub(crate) fn request(
        &self,
        actor: Actor,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Request<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "yard.test");
        if let Some(key) = self.key(actor) {
            request = request.header("x-api-key", key);
        }
        match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        }
        .unwrap()
    }

    /// Makes a sandbox.
    pub(crate) async fn sandbox(&self, actor: Actor) -> String {
        let reply = self
            .post(actor, "/sandboxes/create", serde_json::json!({}))
            .await
            .ok();
        reply["sandbox_id"].as_str().unwrap().to_owned()
    }
}

/// Makes the users and their keys.
async fn people(auth: &Auth, clock: &Clock) -> [String; 4] {
    for (name, role) in [
        ("alice", Role::User),
        ("bob", Role::User),
        ("root", Role::Admin),
    ] {
        auth.create_user(name, Some(PASSWORD), role, None)
            .await
            .unwrap();
    }
    let users = [Scope::Read, Scope::Use, Scope::Manage];
    let key = async |owner: &str, scopes: &[Scope], ends: Option<i64>| {
        auth.create_key(owner, "test", scopes, ends)
            .await
            .unwrap()
            .secret
    };
    let expired = key("alice", &users, Some(clock.now_ms() + 1000)).await;
    clock.advance_ms(2000);
    [
        key("alice", &users, None).await,
        key("bob", &users, None).await,
        key("root", &Scope::ALL, None).await,
        expired,
    ]
}
