//! `GET /proof?number=…`: proves that this is the sandbox's tool server.
//!
//! A server that connects to its sandbox through a cloud's proxy reaches a port that any program in the sandbox may have taken.
//! Before it sends its token, it sends a random number; only a program that knows the token's hash can answer. Anyone may ask, with
//! any host name: the answer is of no use to others.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

use crate::tool_state::ToolState;

/// Maximum length of the number.
const MAX_NUMBER_BYTES: usize = 128;

/// The route.
pub(super) fn router(tool_state: Arc<ToolState>) -> Router {
    Router::new()
        .route("/proof", get(prove))
        .with_state(tool_state)
}

#[derive(Deserialize)]
struct ProofQuery {
    number: String,
}

async fn prove(
    State(tool_state): State<Arc<ToolState>>,
    Query(query): Query<ProofQuery>,
) -> Response {
    let Some(token) = &tool_state.options.token else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if query.number.len() > MAX_NUMBER_BYTES {
        return StatusCode::BAD_REQUEST.into_response();
    }
    Json(json!({"proof": token.prove(query.number.as_bytes())})).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use serde_json::{Value, json};

    use super::super::settings::tests::TestEnv;
    use crate::options::TokenHash;

    #[tokio::test]
    async fn a_proof_needs_no_token_and_no_local_host_name() {
        let env = TestEnv::new();
        let answer = env.send_from_cloud("GET", "/proof?number=abc", &[]).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = to_bytes(answer.into_body(), 1000).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let proof = TokenHash::of("token").prove(b"abc");
        assert_eq!(body, json!({"proof": proof}));
        let long = format!("/proof?number={}", "a".repeat(200));
        let refused = env.send_from_cloud("GET", &long, &[]).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        for path in ["/health", "/mcp", "/sse"] {
            let refused = env.send_from_cloud("GET", path, &[]).await;
            assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{path}");
        }
    }

    #[tokio::test]
    async fn a_token_is_accepted_with_any_host_name() {
        let env = TestEnv::new();
        let headers = |token| [("x-access-token", token), ("origin", "https://page.test")];
        let accepted = env
            .send_from_cloud("GET", "/health", &headers("token"))
            .await;
        assert_eq!(accepted.status(), StatusCode::OK);
        let refused = env
            .send_from_cloud("GET", "/health", &headers("wrong"))
            .await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    }

    impl TestEnv {
        /// Sends a request over TCP, with a host name of a cloud.
        async fn send_from_cloud(
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
