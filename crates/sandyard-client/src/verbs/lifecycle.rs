//! Lifecycle of sandboxes.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{
    Change, CreateSandbox, ForkSandbox, ListFilter, Metrics, MetricsPoint, Page, Sandbox,
    SandboxInfo, SetTimeout, Template, UpdateSandbox,
};
use crate::request::TimeLimit;

/// Maximum number of attempts of a create whose connection fails.
const CREATE_TRIES: u32 = 4;

impl Client {
    /// Creates a sandbox. Retried if the connection fails: the idempotency key prevents a second sandbox.
    ///
    /// # Errors
    ///
    /// If the server rejects the request, or cannot be reached.
    pub async fn create(&self, request: &CreateSandbox) -> Result<Sandbox> {
        self.create_with_key(request, &random_key()).await
    }

    /// Creates a sandbox with an idempotency key: a repetition with the same key returns the same sandbox.
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
        self.fetch("creating a sandbox", TimeLimit::Short, request)
            .await
    }

    /// Wakes a sandbox if needed, and restarts its idle timeout.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist or cannot run.
    pub async fn connect(&self, sandbox: &str) -> Result<Sandbox> {
        let body = json!({ "sandbox_id": sandbox });
        self.post("connecting to a sandbox", ["sandboxes", "connect"], &body)
            .await
    }

    /// Returns everything known about a sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn inspect(&self, sandbox: &str) -> Result<SandboxInfo> {
        let route = ["sandboxes", sandbox, "info"];
        self.get("fetching a sandbox", route).await
    }

    /// Returns one page of sandboxes.
    ///
    /// # Errors
    ///
    /// If the filter is not valid.
    pub async fn list(&self, filter: &ListFilter) -> Result<Page<SandboxInfo>> {
        let operation = "listing sandboxes";
        let request = self.request(Method::GET, ["sandboxes"]).query(filter);
        let answer: Wrapped = self.fetch(operation, TimeLimit::Short, request).await?;
        answer.page(operation, "sandboxes")
    }

    /// Returns all sandboxes, reading page after page.
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
            // A server that returned the same cursor twice would cause an endless loop.
            match page.next {
                Some(next) if filter.cursor.as_ref() != Some(&next) => filter.cursor = Some(next),
                _ => return Ok(all),
            }
        }
    }

    /// Pauses a sandbox and keeps its memory.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist or cannot be paused.
    pub async fn pause(&self, sandbox: &str) -> Result<Sandbox> {
        let route = ["sandboxes", sandbox, "pause"];
        let request = self.request(Method::POST, route);
        self.fetch("pausing a sandbox", TimeLimit::Short, request)
            .await
    }

    /// Resumes or starts a sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist or cannot run.
    pub async fn resume(&self, sandbox: &str) -> Result<Sandbox> {
        let route = ["sandboxes", sandbox, "resume"];
        let request = self.request(Method::POST, route);
        self.fetch("resuming a sandbox", TimeLimit::Short, request)
            .await
    }

    /// Stops a sandbox and keeps its files.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn stop(&self, sandbox: &str) -> Result<Sandbox> {
        let request = self.request(Method::POST, ["sandboxes", sandbox, "stop"]);
        self.fetch("stopping a sandbox", TimeLimit::Short, request)
            .await
    }

    /// Deletes a sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn delete(&self, sandbox: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["sandboxes", sandbox]);
        self.send("deleting a sandbox", TimeLimit::Short, request)
            .await?;
        Ok(())
    }

    /// Changes the idle timeout of a sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist, or the timeout is not valid.
    pub async fn set_timeout(
        &self,
        sandbox: &str,
        timeout: &SetTimeout,
    ) -> Result<serde_json::Value> {
        let mut body = json!(timeout);
        body["sandbox_id"] = json!(sandbox);
        let route = ["sandboxes", "schedule-timeout"];
        self.post("setting the timeout", route, &body).await
    }

    /// Changes the name and the labels of a sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist, or the name or a label is not valid, or another sandbox of the owner has the name.
    pub async fn update(&self, sandbox: &str, changes: &UpdateSandbox) -> Result<Sandbox> {
        let request = self
            .request(Method::PATCH, ["sandboxes", sandbox])
            .json(changes);
        self.fetch("changing a sandbox", TimeLimit::Short, request)
            .await
    }

    /// Saves a sandbox's files as a template.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist, or its provider does not support snapshots.
    pub async fn snapshot(&self, sandbox: &str, name: &str) -> Result<Template> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "snapshot"])
            .json(&json!({ "name": name }));
        self.fetch("creating a snapshot", TimeLimit::Unlimited, request)
            .await
    }

    /// Creates another sandbox from the files of this one.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist, or its provider does not support forks.
    pub async fn fork(&self, sandbox: &str, request: &ForkSandbox) -> Result<Sandbox> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "fork"])
            .json(request);
        self.fetch("forking a sandbox", TimeLimit::Unlimited, request)
            .await
    }

    /// Lists files that differ from the template's.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist, or its provider does not support diffs.
    pub async fn diff(&self, sandbox: &str) -> Result<Vec<Change>> {
        let operation = "comparing a sandbox with its template";
        let route = ["sandboxes", sandbox, "diff"];
        let answer: Wrapped = self.get(operation, route).await?;
        Ok(answer.page(operation, "changes")?.items)
    }

    /// Returns the current resource usage of a sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn metrics(&self, sandbox: &str) -> Result<Metrics> {
        let route = ["sandboxes", sandbox, "metrics"];
        self.get("fetching resource usage", route).await
    }

    /// Returns the resource usage of the last hour, oldest first: one point for every five seconds that the sandbox
    /// ran.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn metrics_history(&self, sandbox: &str) -> Result<Vec<MetricsPoint>> {
        let operation = "fetching resource usage";
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
