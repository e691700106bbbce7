//! `GET /health`: the control plane answers.

/// Check that the E2B API answers
///
/// Returns an empty text. Requires no credentials.
#[utoipa::path(
    get, path = "/e2b/health", tag = "e2b",
    responses((status = 200, description = "API answers.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn e2b_health() -> &'static str {
    "The control plane answers"
}
