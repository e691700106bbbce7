//! Sandboxes from create to delete.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{
    Change, CreateSandbox, ForkSandbox, ListFilter, Metrics, MetricsPoint, Page, Sandbox,
    SandboxInfo, SetTimeout, Template,
};
use crate::request::Patience;

/// How often a create is sent when the connection fails.
const CREATE_TRIES: u32 = 4;

impl Client {
    /// Makes a sandbox. Tried again when the connection fails: the key it carries keeps that from making two.
    ///
    /// # Errors
    ///
    /// What the server refused and why; or that it cannot be reached.
    pub async fn create(&self, request: &CreateSandbox) -> Result<Sandbox> {
        self.create_with_key(request, &random_key()).await
    }

    /// Makes a sandbox; a repetition with the same key gives the same sandbox.
    ///
    /// # Errors
    ///
    /// As [`Client::create`].
    pub async fn create_with_key(&self, request: &CreateSandbox, key: &str) -> Result<Sandbox> {
        let mut pause = Duration::from_millis(100);
        for _ in 1..CREATE_TRIES {
            match self.create_once(request, key).await {
                Err(error) if error.is_connection_failure() && !error.is_unreachable() => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                other => return other,
            }
        }
        self.create_once(request, key).await
    }

    async fn create_once(&self, request: &CreateSandbox, key: &str) -> Result<Sandbox> {
        let request = self
            .request(Method::POST, ["sandboxes", "create"])
            .header("Idempotency-Key", key)
            .json(request);
        self.fetch("creating a sandbox", Patience::Short, request)
            .await
    }

    /// Makes a sandbox run if it does not, and restarts its time.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or it cannot run.
    pub async fn connect(&self, sandbox: &str) -> Result<Sandbox> {
        let body = json!({ "sandbox_id": sandbox });
        self.post("connecting to a sandbox", ["sandboxes", "connect"], &body)
            .await
    }

    /// All that is known of a sandbox.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn inspect(&self, sandbox: &str) -> Result<SandboxInfo> {
        let route = ["sandboxes", sandbox, "info"];
        self.get("looking at a sandbox", route).await
    }

    /// One page of the sandboxes.
    ///
    /// # Errors
    ///
    /// When the filter makes no sense.
    pub async fn list(&self, filter: &ListFilter) -> Result<Page<SandboxInfo>> {
        let operation = "listing sandboxes";
        let request = self.request(Method::GET, ["sandboxes"]).query(filter);
        let answer: Wrapped = self.fetch(operation, Patience::Short, request).await?;
        answer.page(operation, "sandboxes")
    }

    /// All the sandboxes, page after page.
    ///
    /// # Errors
    ///
    /// As [`Client::list`].
    pub async fn list_all(&self, filter: &ListFilter) -> Result<Vec<SandboxInfo>> {
        let mut filter = filter.clone();
        let mut all = Vec::new();
        loop {
            let page = self.list(&filter).await?;
            all.extend(page.items);
            // A server that hands out the same place twice would keep us forever.
            match page.next {
                Some(next) if filter.cursor.as_ref() != Some(&next) => filter.cursor = Some(next),
                _ => return Ok(all),
            }
        }
    }

    /// Freezes a sandbox with its memory kept.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or it cannot be frozen.
    pub async fn pause(&self, sandbox: &str) -> Result<Sandbox> {
        let route = ["sandboxes", sandbox, "pause"];
        let request = self.request(Method::POST, route);
        self.fetch("pausing a sandbox", Patience::Short, request)
            .await
    }

    /// Thaws or starts a sandbox.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or it cannot run.
    pub async fn resume(&self, sandbox: &str) -> Result<Sandbox> {
        let route = ["sandboxes", sandbox, "resume"];
        let request = self.request(Method::POST, route);
        self.fetch("resuming a sandbox", Patience::Short, request)
            .await
    }

    /// Ends a sandbox's processes and keeps its files.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn stop(&self, sandbox: &str) -> Result<Sandbox> {
        let request = self.request(Method::POST, ["sandboxes", sandbox, "stop"]);
        self.fetch("stopping a sandbox", Patience::Short, request)
            .await
    }

    /// Removes a sandbox.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn delete(&self, sandbox: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["sandboxes", sandbox]);
        self.send("deleting a sandbox", Patience::Short, request)
            .await?;
        Ok(())
    }

    /// Gives a sandbox a new time.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or the time makes no sense.
    pub async fn set_timeout(
        &self,
        sandbox: &str,
        timeout: &SetTimeout,
    ) -> Result<serde_json::Value> {
        let mut body = json!(timeout);
        body["sandbox_id"] = json!(sandbox);
        let route = ["sandboxes", "schedule-timeout"];
        self.post("setting a time-out", route, &body).await
    }

    /// Keeps a sandbox's files as a template.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or its provider cannot do this.
    pub async fn snapshot(&self, sandbox: &str, name: &str) -> Result<Template> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "snapshot"])
            .json(&json!({ "name": name }));
        self.fetch(
            "keeping a sandbox as a template",
            Patience::Endless,
            request,
        )
        .await
    }

    /// Makes another sandbox from the files of this one.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or its provider cannot do this.
    pub async fn fork(&self, sandbox: &str, request: &ForkSandbox) -> Result<Sandbox> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "fork"])
            .json(request);
        self.fetch("forking a sandbox", Patience::Endless, request)
            .await
    }

    /// Lists what changed since the template.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or its provider cannot tell.
    pub async fn diff(&self, sandbox: &str) -> Result<Vec<Change>> {
        let operation = "comparing a sandbox with its template";
        let route = ["sandboxes", sandbox, "diff"];
        let answer: Wrapped = self.get(operation, route).await?;
        Ok(answer.page(operation, "changes")?.items)
    }

    /// What a sandbox uses now.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn metrics(&self, sandbox: &str) -> Result<Metrics> {
        let route = ["sandboxes", sandbox, "metrics"];
        self.get("measuring a sandbox", route).await
    }

    /// What a sandbox used over the last hour, oldest first: a point every five seconds that it ran.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn metrics_history(&self, sandbox: &str) -> Result<Vec<MetricsPoint>> {
        let operation = "reading what a sandbox used";
        let route = ["sandboxes", sandbox, "metrics", "history"];
        let answer: Wrapped = self.get(operation, route).await?;
        Ok(answer.page(operation, "points")?.items)
    }
}

fn random_key() -> String {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .expect("the kernel's random numbers are ready once the system is up");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ() {
        assert_ne!(random_key(), random_key());
        assert_eq!(random_key().len(), 32);
    }
}
