//! Images that a real Docker daemon pulls from a small registry of the test with one tiny image.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use sandyard_provider::InstanceSpec;
use sandyard_provider::ProviderErrorKind::{NoCapacity, NotFound};
use sandyard_provider::prelude::*;
use sandyard_providers::docker::{Docker, DockerConfig, Pull};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::env::spec;
use crate::fake_dockerd::Dockerd;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A registry with the image `one:1`; ends when dropped.
struct Registry {
    address: SocketAddr,
    registry_state: Arc<Shelf>,
    accepting: AbortHandle,
}

struct Shelf {
    /// Blobs by digest, with their media types. The manifest is the first.
    blobs: Vec<(String, &'static str, Bytes)>,
    call: Mutex<Vec<String>>,
    /// From now on every request fails.
    is_broken: Mutex<bool>,
}

impl Registry {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let registry_state = Arc::new(Shelf {
            blobs: image(),
            call: Mutex::default(),
            is_broken: Mutex::default(),
        });
        let shelf = registry_state.clone();
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shelf = shelf.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = shelf.answer(&request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // The daemon tries TLS first.
                tokio::spawn(async move { connection.await.ok() });
            }
        };
        Self {
            address,
            registry_state,
            accepting: tokio::spawn(accept).abort_handle(),
        }
    }

    fn name(&self, tag: &str) -> String {
        format!("{}/one:{tag}", self.address)
    }

    /// How often the files of the image were pulled.
    fn fetches(&self) -> usize {
        let layer = &self.registry_state.blobs[2].0;
        let call = self.registry_state.call.lock();
        let is_it = |path: &&String| path.ends_with(&format!("/blobs/{layer}"));
        call.iter().filter(is_it).count()
    }

    fn set_broken(&self) {
        *self.registry_state.is_broken.lock() = true;
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shelf {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let is_broken = self.is_broken.lock();
        if *is_broken {
            let body = r#"{"errors":[{"code":"UNKNOWN","message":"out of order"}]}"#;
            return answer(StatusCode::INTERNAL_SERVER_ERROR, "application/json", body);
        }
        let found = match path.as_str() {
            "/v2/" => return answer(StatusCode::OK, "application/json", "{}"),
            "/v2/one/manifests/1" => self.blobs.first(),
            path => self
                .blobs
                .iter()
                .find(|(digest, ..)| path.ends_with(digest)),
        };
        self.call.lock().push(path);
        let Some((digest, kind, body)) = found else {
            let body = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
            return answer(StatusCode::NOT_FOUND, "application/json", body);
        };
        let mut answer = answer(StatusCode::OK, kind, body.clone());
        let digest = digest.parse().expect("a header");
        answer.headers_mut().insert("docker-content-digest", digest);
        answer
    }
}

fn answer(status: StatusCode, kind: &str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header("docker-distribution-api-version", "registry/2.0");
    response.body(Full::new(body.into())).expect("an answer")
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The manifest, the configuration and the only layer.
fn image() -> Vec<(String, &'static str, Bytes)> {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["etc", "home", "tmp"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder.path());
    tar.args(["--owner=0", "--group=0", "-cf", "-", "etc", "home", "tmp"]);
    let layer = Bytes::from(tar.output().expect("tar runs").stdout);
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = json!({
        "architecture": architecture, "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        "history": [{"created_by": "a test"}],
    });
    let config = Bytes::from(config.to_string());
    let described = |kind: &str, bytes: &Bytes| json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": described(CONFIG, &config), "layers": [described(LAYER, &layer)],
    });
    let manifest = Bytes::from(manifest.to_string());
    [(MANIFEST, manifest), (CONFIG, config), (LAYER, layer)]
        .map(|(kind, bytes)| (digest(&bytes), kind, bytes))
        .into()
}

#[tokio::test]
async fn a_missing_image_is_pulled_once() {
    let dockerd = Dockerd::start(true).await;
    let registry = Registry::start().await;
    let config = DockerConfig {
        pull: Pull::Missing,
        ..dockerd.config("ours")
    };
    let provider = Docker::connect(config).await.expect("connect");
    let new_spec = |sandbox: &str, tag: &str| InstanceSpec {
        template: registry.name(tag),
        ..spec(&provider, sandbox)
    };
    // Only unrestricted callers can have images pulled.
    let restricted = InstanceSpec {
        is_restricted: true,
        ..new_spec("zero", "1")
    };
    let refused = provider.create(&restricted).await.expect_err("restricted");
    assert_eq!(refused.kind, NotFound);
    assert_eq!(registry.fetches(), 0);
    let (one, two) = (new_spec("one", "1"), new_spec("two", "1"));
    let (one, two) = tokio::join!(provider.create(&one), provider.create(&two));
    let (one, two) = (one.expect("create"), two.expect("create"));
    assert_eq!(one.template, registry.name("1"));
    assert_eq!(registry.fetches(), 1, "for both");
    let absent = provider.create(&new_spec("three", "2")).await;
    assert_eq!(absent.expect_err("no such tag").kind, NotFound);
    registry.set_broken();
    // An existing image needs no registry.
    let three = provider
        .create(&new_spec("three", "1"))
        .await
        .expect("create");
    let failed = provider.create(&new_spec("four", "3")).await;
    assert_eq!(failed.expect_err("out of order").kind, NoCapacity);
    // With `Pull::Never` only existing images can be used.
    let never = dockerd.provider("ours").await;
    let absent = never.create(&new_spec("four", "2")).await;
    assert_eq!(absent.expect_err("not there").kind, NotFound);
    assert_eq!(registry.fetches(), 1);
    for made in [one, two, three] {
        provider.delete(&made.id).await.expect("delete");
    }
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}
