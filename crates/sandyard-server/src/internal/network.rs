//! Applies a network policy that another node has changed.
//!
//! The other node sends ids only. This node reads policy and secrets from the shared store, so that they are not sent between servers.

use axum::body::Bytes;
use sandyard_provider::{ProviderError, ProviderErrorKind};
use sandyard_providers::node::{SetNetworkRequest, refusal};

use crate::app::App;
use crate::prelude::*;

/// Applies the policy in the sandbox's row; returns the limitations of its enforcement.
pub(super) async fn set_network(app: &App, body: &[u8]) -> (StatusCode, Bytes) {
    let Ok(request) = serde_json::from_slice::<SetNetworkRequest<'_>>(body) else {
        let kind = ProviderErrorKind::Invalid;
        return refusal(ProviderError::new(
            kind,
            "the body is not a `set_network` request",
        ));
    };
    match app.service().refresh_network(&request.sandbox_id).await {
        Ok(lacks) => {
            let json = serde_json::json!(lacks).to_string();
            (StatusCode::OK, json.into())
        }
        Err(error) => refusal(failure(error)),
    }
}

/// Translates a failure of the service to one of a provider.
fn failure(error: ServiceError) -> ProviderError {
    let kind = match error.kind {
        ErrorKind::SandboxNotFound | ErrorKind::NotFound => ProviderErrorKind::NotFound,
        ErrorKind::Conflict => ProviderErrorKind::Conflict,
        ErrorKind::Unsupported => ProviderErrorKind::Unsupported,
        ErrorKind::TimedOut => ProviderErrorKind::TimedOut,
        ErrorKind::Unavailable | ErrorKind::Busy => ProviderErrorKind::Unavailable,
        _ => ProviderErrorKind::Failed,
    };
    ProviderError::new(kind, error.message.clone())
        .hint(error.hint.clone())
        .source(error)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sandyard_auth::{Auth, AuthConfig};
    use sandyard_core::{Caller, Clock, NetworkPolicy, SandboxId};
    use sandyard_provider_fake::FakeProvider;
    use sandyard_service::{CreateRequest, Service, ServiceSettings};
    use sandyard_store::{Store, Timers};
    use serde_json::json;

    use super::*;
    use crate::ServerSettings;

    async fn app(provider: &FakeProvider) -> App {
        let clock = Clock::manual(1_767_225_600_000);
        let store = Store::open("sqlite::memory:").await.unwrap();
        let timers = Timers::open(store.clone(), None, clock.clone()).await;
        let timers = timers.unwrap();
        let settings = ServiceSettings {
            sealing_key: Some([7; 32]),
            ..ServiceSettings::default()
        };
        let service = Service::open(
            store.clone(),
            timers.clone(),
            vec![Arc::new(provider.clone())],
            settings,
            clock.clone(),
        )
        .await
        .unwrap();
        let auth = Auth::open(store.clone(), clock, AuthConfig::default()).await;
        App::new(
            service,
            auth.unwrap(),
            store,
            timers,
            ServerSettings::default(),
        )
    }

    #[tokio::test]
    async fn the_policy_is_read_from_the_shared_store() {
        let provider = FakeProvider::new();
        let app = app(&provider).await;
        let network = NetworkPolicy::from_value(json!({
            "rules": {"api.example.com": [{"transform": {"headers": {"X-Token": "s3cret"}}}]},
        }))
        .unwrap();
        let request = CreateRequest {
            network: Some(network.clone()),
            ..CreateRequest::default()
        };
        let made = app.service().create(&Caller::system(), request).await;
        let made = made.unwrap();
        let instance = made.provider_id.unwrap();
        provider.set_unenforced(vec!["pings".to_owned()]);
        let body = json!({"id": instance, "sandbox_id": made.id}).to_string();
        let (status, answer) = set_network(&app, body.as_bytes()).await;
        assert_eq!(
            (status, &answer[..]),
            (StatusCode::OK, &br#"["pings"]"#[..])
        );
        assert_eq!(provider.grant(&instance).unwrap().policy, network);
    }

    #[tokio::test]
    async fn failures_are_those_of_a_provider() {
        let app = app(&FakeProvider::new()).await;
        let unknown = json!({"id": "x", "sandbox_id": SandboxId::from_random([1; 20])});
        for (body, kind) in [
            (unknown.to_string(), ProviderErrorKind::NotFound),
            ("{}".to_owned(), ProviderErrorKind::Invalid),
        ] {
            let (status, answer) = set_network(&app, body.as_bytes()).await;
            assert_ne!(status, StatusCode::OK);
            let error: ProviderError = serde_json::from_slice(&answer).unwrap();
            assert_eq!(error.kind, kind);
        }
    }
}
