//! `GET /proof?number=…`: shows that this is the tool server that it is taken for.
//!
//! A server that reaches its sandbox through somebody's proxy comes to a port that any program inside may have taken. Before it
//! shows its token there it gives a random number; only who knows the token's hash can answer. Anybody may ask, by any name:
//! what is answered is of no use to others.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

use crate::workshop::Workshop;

/// Longest number that is answered.
const MAX_NUMBER: usize = 128;

/// The route.
pub(super) fn router(workshop: Arc<Workshop>) -> Router {
    Router::new()
        .route("/proof", get(prove))
        .with_state(workshop)
}

#[derive(Deserialize)]
struct Asked {
    number: String,
}

async fn prove(State(workshop): State<Arc<Workshop>>, Query(asked): Query<Asked>) -> Response {
    let Some(token) = &workshop.options.token else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if asked.number.len() > MAX_NUMBER {
        return StatusCode::BAD_REQUEST.into_response();
    }
    Json(json!({"proof": token.prove(asked.number.as_bytes())})).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use serde_json::{Value, json};

    use super::super::routes::tests::Bench;
    use crate::options::TokenHash;

    #[tokio::test]
    async fn whoever_asks_by_whatever_name_gets_a_proof_and_nothing_else() {
        let bench = Bench::new();
        let answer = bench.come("GET", "/proof?number=abc", &[]).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = to_bytes(answer.into_body(), 1000).await.unwrap();
        let told: Value = serde_json::from_slice(&body).unwrap();
        let proof = TokenHash::of("token").prove(b"abc");
        assert_eq!(told, json!({"proof": proof}));
        let long = format!("/proof?number={}", "a".repeat(200));
        let refused = bench.come("GET", &long, &[]).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        for path in ["/health", "/mcp", "/sse"] {
            let refused = bench.come("GET", path, &[]).await;
            assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{path}");
        }
    }

    #[tokio::test]
    async fn the_token_lets_in_by_any_name() {
        let bench = Bench::new();
        let shown = |token| [("x-access-token", token), ("origin", "https://page.test")];
        let let_in = bench.come("GET", "/health", &shown("token")).await;
        assert_eq!(let_in.status(), StatusCode::OK);
        let refused = bench.come("GET", "/health", &shown("wrong")).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    }

    impl Bench {
        /// Comes over TCP, by a name of somebody's cloud.
        async fn come(
            &self,
            method: &str,
            path: &str,
            headers: &[(&str, &str)],
        ) -> axum::response::Response {
            let headers: Vec<_> = [("host", "9984-abc.cloud.test")]
                .into_iter()
                .chain(headers.iter().copied())
                .collect();
            self.send_by_tcp(method, path, &headers, Body::empty())
                .await
        }
    }
}
