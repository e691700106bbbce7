//! What Daytona's own daemon inside a sandbox does for us: files and sessions, enough to bring our agent in and start it.

use std::time::Duration;

use http::Method;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Url};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use serde_json::json;

use super::api::{Api, read_url};
use super::error::odd;
use super::model::{Address, FileInfo, Folder, PortUse, Sandbox, SystemMetrics};

/// The session our agent runs in.
const SESSION: &str = "sandyard";

/// How often a file is sent at most where it was one request too many, and the pause in between.
const MOST_TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// The daemon of one sandbox.
pub(super) struct Toolbox<'a> {
    api: &'a Api,
    base: Url,
}

impl<'a> Toolbox<'a> {
    /// Finds the way to it.
    pub(super) async fn of(api: &'a Api, sandbox: &Sandbox) -> Result<Self> {
        let told = sandbox.toolbox_proxy_url.clone().unwrap_or_default();
        let url = match told.is_empty() {
            false => told,
            true => {
                let path = ["sandbox", &sandbox.id, "toolbox-proxy-url"];
                let address: Address = api.ask("toolbox", api.to(Method::GET, &path)).await?;
                address.url
            }
        };
        let url = read_url(&url).filter(|url| api.edge().may_show_key_to(url));
        let odd = || {
            odd(
                "toolbox",
                "its address is not below the domain of the API, so the key is not shown there",
            )
        };
        let mut base = url.ok_or_else(odd)?;
        if let Ok(mut segments) = base.path_segments_mut() {
            segments.pop_if_empty().push(&sandbox.id);
        }
        Ok(Self { api, base })
    }

    fn to(&self, method: Method, path: &[&str]) -> reqwest::RequestBuilder {
        self.api.at(&self.base, method, path)
    }

    /// The home of the user it runs as.
    pub(super) async fn home(&self) -> Result<String> {
        let asked = self.to(Method::GET, &["user-home-dir"]);
        let folder: Folder = self.api.ask("home", asked).await?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        // It becomes part of a shell line.
        if !folder.dir.starts_with('/') || !folder.dir.chars().all(is_plain) {
            return Err(odd("home", "it is no plain path"));
        }
        Ok(folder.dir.trim_end_matches('/').to_owned())
    }

    /// How long a file is; none: there is no such file.
    pub(super) async fn file_size(&self, path: &str) -> Result<Option<u64>> {
        let asked = self
            .to(Method::GET, &["files", "info"])
            .query(&[("path", path)]);
        match self.api.ask::<FileInfo>("file", asked).await {
            Ok(info) if !info.is_dir => Ok(Some(info.size)),
            Ok(_) => Ok(None),
            // The daemon tells a missing file in one of two ways.
            Err(error) if is_refusal(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a folder of its user's own; one that is there stays.
    pub(super) async fn make_folder(&self, path: &str) -> Result<()> {
        let query = [("path", path), ("mode", "700")];
        let asked = self.to(Method::POST, &["files", "folder"]).query(&query);
        match self.api.tell("folder", asked).await {
            Err(error) if error.kind == ProviderErrorKind::Conflict => Ok(()),
            other => other,
        }
    }

    /// Writes a file and gives it its mode. The content is asked for each time it has to be sent.
    pub(super) async fn upload<F>(
        &self,
        path: &str,
        mode: &str,
        most: Duration,
        content: impl Fn() -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<(Body, u64)>>,
    {
        let mut tries = 1;
        loop {
            let (body, length) = content().await?;
            let file = Part::stream_with_length(body, length).file_name(path.to_owned());
            let form = Form::new()
                .text("files[0].path", path.to_owned())
                .part("files[0].file", file);
            let asked = self.to(Method::POST, &["files", "bulk-upload"]);
            let asked = asked.timeout(most).multipart(form);
            match self.api.tell("upload", asked).await {
                Ok(()) => break,
                // A stream cannot be sent twice, so it is made anew.
                Err(error) if error.kind == ProviderErrorKind::NoCapacity && tries < MOST_TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        let query = [("path", path), ("mode", mode)];
        let asked = self
            .to(Method::POST, &["files", "permissions"])
            .query(&query);
        self.api.tell("permissions", asked).await
    }

    /// Gives a file another name.
    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let query = [("source", from), ("destination", to)];
        let asked = self.to(Method::POST, &["files", "move"]).query(&query);
        self.api.tell("move", asked).await
    }

    /// Says whether somebody listens on a port inside.
    pub(super) async fn is_port_in_use(&self, port: u16) -> Result<bool> {
        let path = ["port", &port.to_string(), "in-use"];
        let answer: PortUse = self.api.ask("port", self.to(Method::GET, &path)).await?;
        Ok(answer.is_in_use)
    }

    /// Ends the session our agent runs in, if there is one.
    pub(super) async fn end_session(&self) -> Result<()> {
        let path = ["process", "session", SESSION];
        let asked = self.to(Method::DELETE, &path);
        match self.api.tell("session", asked).await {
            // There was none.
            Err(error) if is_refusal(&error) => Ok(()),
            other => other,
        }
    }

    /// Runs a shell line in a session of our own, in place of what ran there before.
    pub(super) async fn run(&self, line: &str) -> Result<()> {
        let what = "session";
        self.end_session().await?;
        let asked = self.to(Method::POST, &["process", "session"]);
        let made = asked.json(&json!({"sessionId": SESSION}));
        match self.api.tell(what, made).await {
            Err(error) if error.kind != ProviderErrorKind::Conflict => return Err(error),
            _ => {}
        }
        let asked = self.to(Method::POST, &["process", "session", SESSION, "exec"]);
        let line = asked.json(&json!({"command": line, "runAsync": true}));
        self.api.tell("command", line).await
    }

    /// What is used inside.
    pub(super) async fn metrics(&self) -> Result<SystemMetrics> {
        let asked = self.to(Method::GET, &["system", "metrics"]);
        self.api.ask("metrics", asked).await
    }
}

/// Says whether the daemon understood and said no.
fn is_refusal(error: &ProviderError) -> bool {
    matches!(
        error.kind,
        ProviderErrorKind::NotFound | ProviderErrorKind::Invalid
    )
}
