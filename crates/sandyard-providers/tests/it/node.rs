//! Another server's sandboxes, reached over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use sandyard_provider::ProviderErrorKind::{self, Conflict, NoCapacity, NotFound, Unavailable};
use sandyard_provider::conformance::{self, Options};
use sandyard_provider::prelude::*;
use sandyard_provider::{ProviderError, Verb};
use sandyard_provider_fake::FakeProvider;
use sandyard_providers::{NodeProvider, node};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::agent_client;
use crate::env::{TestEnv, create_foreign_instances, spec};
use crate::node_server::Server;

#[tokio::test]
async fn a_node_in_front_of_the_engine_is_a_provider_like_any_other() {
    let env = TestEnv::new().await;
    let options = Options {
        foreign_instances: create_foreign_instances(&env).await,
        ..Options::default()
    };
    let embedded: Arc<dyn Provider> = Arc::new(env.provider("ours").await);
    let server = Server::start(embedded.clone(), None).await;
    let provider = NodeProvider::connect(server.config("right")).await;
    let provider = provider.expect("connect");
    assert_eq!(provider.info(), embedded.info());
    let report = conformance::run(Arc::new(provider), &options).await;
    report.assert();
    assert_eq!(report.passed(), report.0.len(), "\n{report}");
    env.finish().await;
}

#[tokio::test]
async fn failures_come_back_by_kind_and_with_their_words() {
    let fake = FakeProvider::new();
    let server = Server::start(Arc::new(fake.clone()), None).await;
    let provider = NodeProvider::connect(server.config("right")).await;
    let provider = provider.expect("connect");
    for kind in [NoCapacity, Conflict, ProviderErrorKind::TimedOut] {
        fake.fail_next(Verb::List, kind);
        let reported = provider.list().await.expect_err("fails");
        let expected = ProviderError::new(kind, "`list` failed as the test requested");
        assert_eq!(
            (reported.kind, reported.retry, reported.message),
            (kind, expected.retry, expected.message)
        );
    }
}

#[tokio::test]
async fn a_wrong_token_and_a_node_that_is_gone_are_unavailable() {
    let fake = FakeProvider::new();
    let server = Server::start(Arc::new(fake.clone()), None).await;
    let refused = NodeProvider::connect(server.config("wrong")).await;
    assert_eq!(refused.expect_err("refused").kind, Unavailable);
    assert_eq!(fake.calls(), [], "nothing was asked of the provider");
    let config = server.config("right");
    drop(server);
    let provider = NodeProvider::with_info(config, fake.info().clone()).expect("an address");
    assert_eq!(provider.list().await.unwrap_err().kind, Unavailable);
}

#[tokio::test]
async fn the_tunnel_leads_to_instances_of_ours_that_live() {
    let env = TestEnv::new().await;
    let foreign = create_foreign_instances(&env).await;
    let embedded = Arc::new(env.provider("ours").await);
    let server = Server::start(embedded.clone(), None).await;
    let provider = NodeProvider::connect(server.config("right")).await;
    let provider = provider.expect("connect");
    let made = embedded.create(&spec(&*embedded, "one")).await;
    let id = made.expect("create").id;
    let agent = async |id: &str| agent_client::agent(&provider, id).await;
    agent(&id).await.health().await.expect("healthy");
    for create_foreign in &foreign {
        let refused = agent(create_foreign).await.health().await;
        assert!(refused.is_err(), "{create_foreign} is none of ours");
        let reason = node::tunnel(&*embedded, create_foreign).await.map(drop);
        assert_eq!(reason.unwrap_err().kind, NotFound);
    }
    embedded.stop(&id).await.expect("stop");
    let reason = node::tunnel(&*embedded, &id).await.map(drop);
    assert_eq!(reason.unwrap_err().kind, Conflict);
    env.finish().await;
}

#[tokio::test]
async fn invalid_requests_are_refused_without_quoting_them() {
    let fake = FakeProvider::new();
    for (verb, body) in [
        ("create", r#"{"access_token": {"secret": 1}}"#),
        ("pause", r#"{"id": {"secret": 1}}"#),
        ("explode", "secret"),
        ("agent", "{}"),
        ("import_template", "{}"),
        ("", ""),
    ] {
        let (status, answer) = node::serve_verb(&fake, verb, Bytes::from(body)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{verb}");
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(!text.contains("secret"), "{text}");
        serde_json::from_slice::<ProviderError>(&answer).expect("a failure");
    }
    assert_eq!(fake.calls(), []);
}

#[tokio::test]
async fn a_clusters_own_certificates_are_believed_and_no_others() {
    let issue = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("issue");
    let (own, other) = (issue(), issue());
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .expect("a certificate");
    let fake = Arc::new(FakeProvider::new());
    let server = Server::start(fake, Some(TlsAcceptor::from(Arc::new(tls)))).await;
    let believing = |pem: String| sandyard_providers::NodeConfig {
        authority: Some(pem.into_bytes()),
        ..server.config("right")
    };
    let reached = NodeProvider::connect(believing(own.cert.pem())).await;
    reached.expect("our own");
    let refused = NodeProvider::connect(believing(other.cert.pem())).await;
    assert_eq!(refused.expect_err("another's").kind, Unavailable);
}
