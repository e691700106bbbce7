//! `sandyard version`.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use crate::global::Global;
use crate::output::Format;

/// How long the server may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Prints the versions of this program and of the server, if one answers.
pub(crate) async fn version(global: &Global, format: Format) -> anyhow::Result<ExitCode> {
    let own = env!("CARGO_PKG_VERSION");
    let client = global.client()?;
    let health = tokio::time::timeout(TIMEOUT, client.health()).await;
    let server = health
        .ok()
        .and_then(Result::ok)
        .map(|health| health.version);
    let text = match &server {
        Some(version) => format!("sandyard {own}\nserver   {version} at {}", client.url()),
        None => format!("sandyard {own}\nserver   none at {}", client.url()),
    };
    let url = server.as_ref().map(|_| client.url());
    format.print(&json!({"version": own, "server": server, "url": url}), text)
}
