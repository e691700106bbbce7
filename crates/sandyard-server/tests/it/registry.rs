//! A provider is one folder and one line of the registry: it is then found in settings, documentation, OpenAPI, the running
//! server and the conformance suite without any other edit.

use std::path::Path;

use reqwest::Client;
use sandyard_config::settings::E2bPort;
use sandyard_config::{Settings, Sources, load, reference_markdown};
use sandyard_provider::conformance::{self, Options};
use sandyard_providers::Registry;
use sandyard_providers::registry::{ConnectContext, Registration};
use sandyard_server::serve::{Signals, connect_providers, serve_with};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::extra_provider;

/// The registry of this test: the program's own providers that need no other program, and one more line.
static PROVIDERS: [&Registration; 4] = [
    &sandyard_providers::embedded::REGISTRATION,
    &sandyard_providers::docker::REGISTRATION,
    &sandyard_providers::fake::REGISTRATION,
    &extra_provider::REGISTRATION,
];

static REGISTRY: Registry = Registry::new(&PROVIDERS);

fn sources(data: &Path, flags: &[(&str, &str)]) -> Sources {
    Sources {
        flags: flags
            .iter()
            .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
            .collect(),
        working_dir: data.to_owned(),
        default_data_dir: data.to_owned(),
        system_config_file: data.join("none.toml"),
        table: REGISTRY.table(),
        ..Sources::default()
    }
}

fn settings(data: &Path) -> Settings {
    let flags = [("sandbox.provider", "extra"), ("extra.api_key", "secret")];
    let mut settings = load(&sources(data, &flags)).expect("settings").settings;
    settings.server.ports = vec![0];
    settings.e2b.port = E2bPort::Derived(0);
    settings
}

#[test]
fn settings_know_a_registered_provider() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(settings(folder.path()).sandbox.provider, "extra");
    let errors = |flags: &[(&str, &str)]| -> Vec<String> {
        let problems = load(&sources(folder.path(), flags)).expect_err("problems");
        problems.errors.iter().map(ToString::to_string).collect()
    };
    let missing = errors(&[("sandbox.provider", "extra")]);
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("`extra.api_key` is required"));
    assert!(missing[0].contains("set EXTRA_API_KEY"), "{missing:?}");
    let unknown = errors(&[("sandbox.provider", "exrta")]);
    assert!(unknown[0].contains("extra"), "{unknown:?}");
    assert!(!unknown[0].contains("e2b"), "not registered: {unknown:?}");
    let invalid = errors(&[
        ("sandbox.provider", "extra"),
        ("extra.api_key", "secret"),
        ("extra.latency", "2h"),
    ]);
    assert!(invalid[0].contains("extra.latency"), "{invalid:?}");
}

#[test]
fn documents_know_a_registered_provider() {
    let reference = reference_markdown(&REGISTRY.table());
    assert!(reference.contains("| `extra` | in a test | `[extra]` |"));
    assert!(reference.contains("`SANDYARD_EXTRA_LATENCY`"));
    let table = REGISTRY.markdown();
    assert!(table.contains("| `extra` | in a test | yes |"), "{table}");
    let document = sandyard_server::openapi_for(REGISTRY);
    let providers = &document["components"]["schemas"]["CreateSandbox"]["properties"]["provider"];
    let names = providers["enum"].as_array().expect("names");
    assert!(names.contains(&Value::from("extra")), "{names:?}");
    assert!(!names.contains(&Value::from("e2b")), "{names:?}");
}

#[tokio::test]
async fn a_server_runs_a_registered_provider_and_the_command_line_lists_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = settings(folder.path());
    let (stop, stopped) = oneshot::channel::<()>();
    let (ready, is_ready) = oneshot::channel();
    let signals = Signals::until(async move {
        let _ = stopped.await;
    });
    let all = settings.clone();
    let connect = |name: String| async move { connect_providers(REGISTRY, &all, &name).await };
    let report = |started: &sandyard_server::serve::Started| {
        let _ = ready.send(started.clone());
    };
    let server = tokio::spawn(serve_with(settings, connect, report, signals));
    let started = is_ready.await.expect("the server starts");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build().expect("a client");
    // What `sandyard provider ls` prints.
    let url = format!("{}/health", started.addresses[0].url());
    let health = client.get(url).send().await.expect("an answer");
    let health: Value = health.json().await.expect("JSON");
    assert_eq!(health["providers"][0]["name"], "extra", "{health}");
    assert_eq!(health["providers"][0]["status"], "healthy", "{health}");
    let _ = stop.send(());
    server.await.expect("no panic").expect("it ends well");
}

/// Providers that need another program or root: their own tests set that up and run the suite.
const WITH_OWN_SUITE: [&str; 4] = ["embedded", "docker", "e2b", "daytona"];

async fn conform(registry: Registry) -> Vec<&'static str> {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = settings(folder.path());
    let mut conforming = Vec::new();
    for provider in registry.all() {
        if WITH_OWN_SUITE.contains(&provider.name()) {
            continue;
        }
        let context = ConnectContext {
            settings: &settings,
            installation: "test",
            sealing_key: [7; 32],
        };
        let connected = (provider.connect)(context).await.expect("connected");
        assert_eq!(connected.info().name, provider.name());
        let report = conformance::run(connected, &Options::default()).await;
        report.assert();
        conforming.push(provider.name());
    }
    conforming
}

#[tokio::test]
async fn every_registered_provider_passes_the_conformance_suite() {
    assert_eq!(conform(Registry::BUILTIN).await, ["fake"]);
    assert_eq!(conform(REGISTRY).await, ["fake", "extra"]);
}
