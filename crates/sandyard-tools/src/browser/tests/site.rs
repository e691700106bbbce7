//! A small web site for the tests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

type Pages = Arc<Mutex<HashMap<usize, String>>>;

/// It ends when it is dropped.
pub(super) struct Site {
    pub(super) root: String,
    pages: Pages,
    /// Told when somebody asks for the page that never comes.
    never: Arc<Notify>,
    serving: JoinHandle<()>,
}

impl Site {
    pub(super) async fn start() -> Self {
        let pages = Pages::default();
        let never = Arc::new(Notify::new());
        let requested = never.clone();
        let router = Router::new()
            .route("/page/{number}", get(page))
            .route(
                "/never",
                get(move || {
                    requested.notify_one();
                    std::future::pending::<String>()
                }),
            )
            .route("/circle", get(async || Redirect::to("/circle")))
            .route("/nothing", get(async || StatusCode::NO_CONTENT))
            .route("/file", get(file))
            .route("/endless", get(endless))
            .with_state(pages.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            root,
            pages,
            never,
            serving,
        }
    }

    /// Waits until somebody waits for the page that never comes.
    pub(super) async fn until_never_is_asked_for(&self) {
        let requested = tokio::time::timeout(Duration::from_secs(90), self.never.notified());
        requested.await.expect("it is asked for");
    }

    /// The address of a new page.
    pub(super) fn page(&self, html: &str) -> String {
        let mut pages = self.pages.lock().unwrap();
        let number = pages.len();
        pages.insert(number, format!("<!doctype html><meta charset=utf-8>{html}"));
        format!("{}/page/{number}", self.root)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn page(Path(number): Path<usize>, State(pages): State<Pages>) -> Response {
    let page = pages.lock().unwrap().get(&number).cloned();
    match page {
        Some(html) => Html(html).into_response(),
        None => (StatusCode::NOT_FOUND, Html("<title>none</title>")).into_response(),
    }
}

async fn file() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"../data.bin\"",
        ),
    ];
    (headers, "the file's bytes").into_response()
}

/// A file that says to be larger than any that is kept.
async fn endless() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_LENGTH, "9000000000"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"large.bin\"",
        ),
    ];
    let chunks =
        futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0_u8; 64 * 1024]));
    (headers, axum::body::Body::from_stream(chunks)).into_response()
}
