//! Against a server of our own.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Json, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::tools;
use crate::call::Call;
use crate::options::Options;
use crate::reply::Reply;
use crate::tool_state::{Credential, ToolState};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nand so on";

type Requests = Arc<Mutex<Vec<(String, Value)>>>;

struct TestEnv {
    tool_state: Arc<ToolState>,
    root: String,
    requests: Requests,
    _folder: tempfile::TempDir,
}

impl TestEnv {
    async fn new() -> Self {
        let requests = Requests::default();
        let html = "<title>T</title><h1>Hello</h1><script>no()</script><p>see <a href=/x>x</a>";
        let router = Router::new()
            .route("/html", get(async move || Html(html)))
            .route(
                "/latin",
                get(async || {
                    (
                        [(header::CONTENT_TYPE, "text/html; charset=ISO-8859-1")],
                        b"gr\xfc\xdfe".to_vec(),
                    )
                }),
            )
            .route("/json", get(async || Json(json!({ "a": 1 }))))
            .route("/away", get(async || Redirect::to("/html")))
            .route("/circle", get(async || Redirect::to("/circle")))
            .route(
                "/png",
                get(async || ([(header::CONTENT_TYPE, "image/png")], PNG)),
            )
            .route(
                "/pdf",
                get(async || ([(header::CONTENT_TYPE, "application/pdf")], "%PDF-1.7")),
            )
            .route(
                "/zip",
                get(async || ([(header::CONTENT_TYPE, "application/zip")], "PK")),
            )
            .route(
                "/none",
                get(async || (StatusCode::NOT_FOUND, Html("<p>gone"))),
            )
            .route("/large", get(async || "x".repeat(7 * 1024 * 1024)))
            .route("/tools/web-search", post(search))
            .route("/tools/image-search", post(images))
            .with_state(requests.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        let tool_state = ToolState::new(Options {
            workspace: folder.path().to_owned(),
            more_roots: Vec::new(),
            home: folder.path().to_owned(),
            token: None,
            port: 6060,
        });
        Self {
            tool_state: Arc::new(tool_state),
            root,
            requests,
            _folder: folder,
        }
    }

    async fn call(&self, name: &str, args: Value) -> Value {
        let tool = tools()
            .into_iter()
            .find(|tool| tool.name() == name)
            .unwrap();
        let args = args.as_object().unwrap().clone();
        let answer = tool
            .call(self.tool_state.clone(), args, Call::quiet())
            .await;
        serde_json::to_value(answer.unwrap_or_else(Reply::from).into_result()).unwrap()
    }

    async fn visit(&self, path: &str) -> (String, bool) {
        let url = format!("{}{path}", self.root);
        let result = self
            .call("web_visit", json!({ "url": url, "prompt": "the answer" }))
            .await;
        text_of(&result)
    }

    fn configure(&self) {
        self.tool_state.update_config(|told| {
            told.tool_server_url = Some(format!("{}/tools/", self.root));
            told.credential = Some(Credential {
                user_api_key: "the-key".into(),
                session_id: "s1".into(),
            });
        });
    }
}

fn text_of(result: &Value) -> (String, bool) {
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["isError"] == true)
}

async fn search(
    State(requests): State<Requests>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> axum::response::Response {
    let key = headers[header::AUTHORIZATION].to_str().unwrap().to_owned();
    requests.lock().unwrap().push((key, body.clone()));
    if body["query"] == "fail" {
        return (
            StatusCode::PAYMENT_REQUIRED,
            Json(json!({ "detail": "no money" })),
        )
            .into_response();
    }
    let found = json!({ "title": "Found", "url": "http://found/", "content": format!("about {}", body["query"]) });
    Json(json!({ "results": [found] })).into_response()
}

async fn images(Json(body): Json<Value>) -> Json<Value> {
    let title = body.to_string();
    Json(
        json!({ "results": [{ "title": title, "image_url": "http://i/1.png", "width": 3, "height": 4 }] }),
    )
}

#[tokio::test]
async fn web_pages_are_read() {
    let env = TestEnv::new().await;
    let (text, is_error) = env.visit("/away").await;
    assert!(!is_error, "{text}");
    assert!(text.contains("Look for: the answer"), "{text}");
    assert!(text.contains("/html\n"), "{text}");
    assert!(text.contains("Title: T\n\n# Hello\n\nsee [x]("), "{text}");
    assert!(env.visit("/latin").await.0.ends_with("grüße"));
    assert!(env.visit("/json").await.0.ends_with("{\"a\":1}"));
    assert!(env.visit("/pdf").await.0.contains("read it with Read"));
    assert!(env.visit("/zip").await.0.contains("cannot be shown"));
    let (text, is_error) = env.visit("/none").await;
    assert!(
        is_error && text.contains("404") && text.contains("gone"),
        "{text}"
    );
    let (text, is_error) = env.visit("/circle").await;
    assert!(is_error && text.contains("redirect"), "{text}");
    let (text, is_error) = env.visit("/large").await;
    assert!(!is_error && text.len() < 70_000, "{}", text.len());
    assert!(
        text.contains("Only the first 5242880 bytes") && text.contains("[truncated:"),
        "{}",
        &text[..200]
    );
}

#[tokio::test]
async fn web_images_are_shown() {
    let env = TestEnv::new().await;
    let url = format!("{}/png", env.root);
    for name in ["read_remote_image", "web_visit"] {
        let result = env.call(name, json!({ "url": url })).await;
        assert_eq!(result["content"][1]["mimeType"], "image/png", "{result}");
    }
    let result = env
        .call(
            "read_remote_image",
            json!({ "url": format!("{}/html", env.root) }),
        )
        .await;
    assert!(text_of(&result).0.contains("is not a PNG"), "{result}");
}

#[tokio::test]
async fn web_addresses_that_are_none_are_refused() {
    let env = TestEnv::new().await;
    for url in [
        "file:///etc/passwd",
        "ftp://x/",
        "about:blank",
        "",
        "http://127.0.0.1:1/",
        "http://[::1",
    ] {
        let result = env.call("web_visit", json!({ "url": url })).await;
        assert!(text_of(&result).1, "{url}: {result}");
    }
}

#[tokio::test]
async fn web_search_asks_the_configured_server() {
    let env = TestEnv::new().await;
    let (text, is_error) = text_of(&env.call("web_search", json!({ "query": "x" })).await);
    assert!(is_error && text.contains("setup-mcp"), "{text}");

    env.configure();
    let (text, is_error) = text_of(&env.call("web_search", json!({ "query": "x" })).await);
    assert!(
        !is_error && text.contains("- Found\n  http://found/\n  about \"x\""),
        "{text}"
    );
    {
        let requests = env.requests.lock().unwrap();
        let (key, body) = &requests[0];
        assert_eq!(key, "Bearer the-key");
        assert_eq!(
            *body,
            json!({ "query": "x", "max_results": 10, "session_id": "s1" })
        );
    }
    let (text, is_error) = text_of(&env.call("web_search", json!({ "query": "fail" })).await);
    assert!(
        is_error && text.contains("402") && text.contains("no money") && !text.contains("the-key"),
        "{text}"
    );
    let args = json!({ "queries": ["one", "fail", "two"] });
    let (text, is_error) = text_of(&env.call("web_batch_search", args).await);
    assert!(
        !is_error && text.contains("about \"one\"") && text.contains("about \"two\""),
        "{text}"
    );
    assert!(text.contains("# fail\nthis search failed"), "{text}");
    let args = json!({ "query": "cat", "min_width": 5 });
    let (text, is_error) = text_of(&env.call("image_search", args).await);
    assert!(
        !is_error && text.contains("http://i/1.png (3 by 4)") && text.contains("\"min_width\":5"),
        "{text}"
    );

    env.tool_state
        .update_config(|told| told.tool_server_url = Some("http://127.0.0.1:1".into()));
    let (text, is_error) = text_of(&env.call("web_search", json!({ "query": "x" })).await);
    assert!(
        is_error && text.contains("cannot be reached") && !text.contains("the-key"),
        "{text}"
    );
}
