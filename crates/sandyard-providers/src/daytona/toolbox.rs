//! Daytona's daemon in a sandbox: files and sessions, enough to install and start the agent.

use std::time::Duration;

use http::Method;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Url};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use serde_json::json;

use super::api::{Api, read_url};
use super::error::unreadable;
use super::model::{Address, FileInfo, Folder, PortUse, Sandbox, SystemMetrics};

/// Name of the agent's session.
const SESSION: &str = "sandyard";

/// Maximum number of uploads of a file when the rate limit refuses them, and the pause in between.
const MAX_ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// The daemon of one sandbox.
pub(super) struct Toolbox<'a> {
    api: &'a Api,
    base: Url,
}

impl<'a> Toolbox<'a> {
    /// Finds the address of the daemon.
    pub(super) async fn of(api: &'a Api, sandbox: &Sandbox) -> Result<Self> {
        let reported = sandbox.toolbox_proxy_url.clone().unwrap_or_default();
        let url = match reported.is_empty() {
            false => reported,
            true => {
                let path = ["sandbox", &sandbox.id, "toolbox-proxy-url"];
                let address: Address = api.ask("toolbox", api.to(Method::GET, &path)).await?;
                address.url
            }
        };
        let url = read_url(&url).filter(|url| api.edge().accepts_key(url));
        let invalid = || {
            unreadable(
                "toolbox",
                "its address is not below the domain of the API, so the key is not sent there",
            )
        };
        let mut base = url.ok_or_else(invalid)?;
        if let Ok(mut segments) = base.path_segments_mut() {
            segments.pop_if_empty().push(&sandbox.id);
        }
        Ok(Self { api, base })
    }

    fn to(&self, method: Method, path: &[&str]) -> reqwest::RequestBuilder {
        self.api.at(&self.base, method, path)
    }

    /// The home directory of the daemon's user.
    pub(super) async fn home(&self) -> Result<String> {
        let request = self.to(Method::GET, &["user-home-dir"]);
        let folder: Folder = self.api.ask("home", request).await?;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        // It becomes part of a shell line.
        if !folder.dir.starts_with('/') || !folder.dir.chars().all(is_allowed) {
            return Err(unreadable("home", "it is not a plain path"));
        }
        Ok(folder.dir.trim_end_matches('/').to_owned())
    }

    /// Size of a file; `None` if it does not exist.
    pub(super) async fn file_size(&self, path: &str) -> Result<Option<u64>> {
        let request = self
            .to(Method::GET, &["files", "info"])
            .query(&[("path", path)]);
        match self.api.ask::<FileInfo>("file", request).await {
            Ok(info) if !info.is_dir => Ok(Some(info.size)),
            Ok(_) => Ok(None),
            // The daemon reports a missing file in one of two ways.
            Err(error) if is_refused(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a private folder; an existing one stays.
    pub(super) async fn make_folder(&self, path: &str) -> Result<()> {
        let query = [("path", path), ("mode", "700")];
        let request = self.to(Method::POST, &["files", "folder"]).query(&query);
        match self.api.send_only("folder", request).await {
            Err(error) if error.kind == ProviderErrorKind::Conflict => Ok(()),
            other => other,
        }
    }

    /// Writes a file and sets its mode. `content` is called for each attempt.
    pub(super) async fn upload<F>(
        &self,
        path: &str,
        mode: &str,
        timeout: Duration,
        content: impl Fn() -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<(Body, u64)>>,
    {
        let mut attempts = 1;
        loop {
            let (body, length) = content().await?;
            let file = Part::stream_with_length(body, length).file_name(path.to_owned());
            let form = Form::new()
                .text("files[0].path", path.to_owned())
                .part("files[0].file", file);
            let request = self.to(Method::POST, &["files", "bulk-upload"]);
            let request = request.timeout(timeout).multipart(form);
            match self.api.send_only("upload", request).await {
                Ok(()) => break,
                // A stream cannot be sent twice, so it is created again.
                Err(error)
                    if error.kind == ProviderErrorKind::NoCapacity && attempts < MAX_ATTEMPTS =>
                {
                    attempts += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        let query = [("path", path), ("mode", mode)];
        let request = self
            .to(Method::POST, &["files", "permissions"])
            .query(&query);
        self.api.send_only("permissions", request).await
    }

    /// Renames a file.
    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let query = [("source", from), ("destination", to)];
        let request = self.to(Method::POST, &["files", "move"]).query(&query);
        self.api.send_only("move", request).await
    }

    /// Whether a program listens on a port.
    pub(super) async fn is_port_in_use(&self, port: u16) -> Result<bool> {
        let path = ["port", &port.to_string(), "in-use"];
        let answer: PortUse = self.api.ask("port", self.to(Method::GET, &path)).await?;
        Ok(answer.is_in_use)
    }

    /// Ends the agent's session, if there is one.
    pub(super) async fn end_session(&self) -> Result<()> {
        let path = ["process", "session", SESSION];
        let request = self.to(Method::DELETE, &path);
        match self.api.send_only("session", request).await {
            // There was none.
            Err(error) if is_refused(&error) => Ok(()),
            other => other,
        }
    }

    /// Runs a shell line in a session, in place of what ran there before.
    pub(super) async fn run(&self, line: &str) -> Result<()> {
        let what = "session";
        self.end_session().await?;
        let request = self.to(Method::POST, &["process", "session"]);
        let create = request.json(&json!({"sessionId": SESSION}));
        match self.api.send_only(what, create).await {
            Err(error) if error.kind != ProviderErrorKind::Conflict => return Err(error),
            _ => {}
        }
        let request = self.to(Method::POST, &["process", "session", SESSION, "exec"]);
        let line = request.json(&json!({"command": line, "runAsync": true}));
        self.api.send_only("command", line).await
    }

    /// Current usage.
    pub(super) async fn metrics(&self) -> Result<SystemMetrics> {
        let request = self.to(Method::GET, &["system", "metrics"]);
        self.api.ask("metrics", request).await
    }
}

/// Whether the daemon understood the request and refused it.
fn is_refused(error: &ProviderError) -> bool {
    matches!(
        error.kind,
        ProviderErrorKind::NotFound | ProviderErrorKind::Invalid
    )
}
