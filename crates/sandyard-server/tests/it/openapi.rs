//! The OpenAPI document is complete and up to date: routes, references and the copy in `docs/`.

use std::collections::BTreeSet;
use std::path::Path;

use sandyard_server::router::table;
use serde_json::Value;

use crate::app::{Actor, At, TestApp};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

#[tokio::test]
async fn docs_openapi_json_is_up_to_date() {
    let document = TestApp::new()
        .await
        .get(Actor::Anonymous, "/openapi.json")
        .await
        .ok();
    let text = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(Path::new(FILE).parent().unwrap()).unwrap();
        std::fs::write(FILE, &text).unwrap();
    }
    let stored = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        stored == text,
        "docs/openapi.json is not up to date: run the tests with UPDATE_DOCS=1"
    );
}

#[tokio::test]
async fn references_resolve_and_operations_are_complete() {
    let document = TestApp::new()
        .await
        .get(Actor::Anonymous, "/openapi.json")
        .await
        .ok();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            let has_success = responses.keys().any(|status| status < &"400".to_owned());
            assert!(
                has_success && responses.contains_key("422"),
                "{method} {path}"
            );
            assert!(operation["operationId"].is_string(), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_route_except_pages_is_in_the_document() {
    let document = TestApp::new()
        .await
        .get(Actor::Anonymous, "/openapi.json")
        .await
        .ok();
    for entry in table().iter().filter(|entry| entry.method != "ANY") {
        let operation = &document["paths"][&entry.path][entry.method.to_lowercase()];
        assert_eq!(
            operation["operationId"],
            entry.operation.as_str(),
            "{entry:?}"
        );
    }
}

#[tokio::test]
async fn the_page_loads_nothing_from_other_hosts() {
    let page = TestApp::new().await.get(Actor::Anonymous, "/docs").await;
    assert_eq!(page.status, 200);
    assert!(
        page.headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/html")
    );
    assert!(!page.text.contains("http://") && !page.text.contains("https://"));
    assert!(page.headers.contains_key("content-security-policy"));
}

#[tokio::test]
async fn document_and_page_are_compressed_for_clients_that_accept_gzip() {
    let app = TestApp::new().await;
    for path in ["/openapi.json", "/docs"] {
        let plain = app.get(Actor::Anonymous, path).await;
        assert!(!plain.headers.contains_key("content-encoding"), "{path}");
        assert_eq!(plain.headers["vary"], "accept-encoding", "{path}");
        let mut request = app.request(Actor::Anonymous, "GET", path, None);
        let accepted = "gzip, deflate, br".parse().unwrap();
        request.headers_mut().insert("accept-encoding", accepted);
        let response = app.send_head(At::Network, request).await;
        assert_eq!(response.headers()["content-encoding"], "gzip", "{path}");
        assert_eq!(
            response.headers()["content-type"],
            plain.headers["content-type"]
        );
        let body = axum::body::to_bytes(response.into_body(), 8 << 20);
        let body = body.await.unwrap();
        assert!(body.len() * 2 < plain.text.len(), "{path}: {}", body.len());
        let mut unpacked = String::new();
        let mut decoder = flate2::read::GzDecoder::new(&body[..]);
        std::io::Read::read_to_string(&mut decoder, &mut unpacked).unwrap();
        assert_eq!(unpacked, plain.text, "{path}");
    }
}

#[tokio::test]
async fn the_document_names_servers_credentials_and_deprecated_aliases() {
    let app = TestApp::new().await;
    let document = app.get(Actor::Anonymous, "/openapi.json").await.ok();
    assert_eq!(document["servers"][0]["url"], "/");
    assert_eq!(document["security"][0]["bearer"], serde_json::json!([]));
    let deprecated = |path: &str| document["paths"][path]["post"]["deprecated"] == true;
    for alias in ["/sandboxes/run-cmd", "/sandboxes/timeout"] {
        assert!(deprecated(alias), "{alias}");
    }
    assert!(!deprecated("/sandboxes/run-command"));
    let fields = &document["components"]["schemas"]["CreateSandbox"]["properties"];
    assert_eq!(fields["sandbox_template_id"]["deprecated"], true);
    assert!(document["paths"]["/sandboxes/{id}"]["get"].is_object());
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                references.insert(reference.clone());
            }
            fields.values().for_each(|field| collect(field, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
