//! `GET /health`: this server answers.

/// Says that the control plane answers.
#[utoipa::path(
    get, path = "/e2b/health", operation_id = "e2b_health", tag = "e2b",
    responses((status = 200, description = "It does.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn e2b_health() -> &'static str {
    "The control plane answers"
}
