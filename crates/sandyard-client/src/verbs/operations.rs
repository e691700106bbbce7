//! Operations for operators of the server.

use reqwest::Method;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{DeadTimer, Health, Node, ServerInfo, UnknownInstance};
use crate::request::TimeLimit;

impl Client {
    /// Returns the health of the server, also if it is unhealthy.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn health(&self) -> Result<Health> {
        let answer = self.get("fetching the server's health", ["health"]);
        answer.await.or_else(|error| {
            let health = error.api().filter(|error| error.status == 503);
            let health = health.and_then(|error| serde_json::from_str(&error.body).ok());
            health.ok_or(error)
        })
    }

    /// Returns information about the server.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or rejects the credentials.
    pub async fn server_info(&self) -> Result<ServerInfo> {
        self.get("fetching information about the server", ["info"])
            .await
    }

    /// Lists the servers that share the database. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the caller is not an admin.
    pub async fn nodes(&self) -> Result<Vec<Node>> {
        let operation = "listing nodes";
        let answer: Wrapped = self.get(operation, ["nodes"]).await?;
        Ok(answer.page(operation, "nodes")?.items)
    }

    /// Lists timers that are no longer retried. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the caller is not an admin.
    pub async fn dead_timers(&self) -> Result<Vec<DeadTimer>> {
        let operation = "listing dead timers";
        let answer: Wrapped = self.get(operation, ["timers", "dead"]).await?;
        Ok(answer.page(operation, "timers")?.items)
    }

    /// Retries a failed timer. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the timer does not exist.
    pub async fn revive_timer(&self, subject: &str) -> Result<()> {
        let route = ["timers", "dead", subject, "revive"];
        let request = self.request(Method::POST, route);
        self.send("reviving a timer", TimeLimit::Short, request)
            .await?;
        Ok(())
    }

    /// Lists instances of the installation that are not in the database. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the caller is not an admin.
    pub async fn unknown_instances(&self) -> Result<Vec<UnknownInstance>> {
        let operation = "listing orphaned instances";
        let request = self.request(Method::GET, ["instances", "unknown"]);
        // The server lists the instances of all providers.
        let answer: Wrapped = self.fetch(operation, TimeLimit::Unlimited, request).await?;
        Ok(answer.page(operation, "instances")?.items)
    }

    /// Deletes an orphaned instance. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the instance does not exist or belongs to a sandbox.
    pub async fn delete_unknown_instance(&self, id: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["instances", "unknown", id]);
        self.send(
            "deleting an orphaned instance",
            TimeLimit::Unlimited,
            request,
        )
        .await?;
        Ok(())
    }
}
