//! What those ask who keep a server running.

use reqwest::Method;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{DeadTimer, Health, Node, ServerInfo, UnknownInstance};
use crate::request::Patience;

impl Client {
    /// How the server is. One that is not well answers too.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    pub async fn health(&self) -> Result<Health> {
        let answer = self.get("asking for the server's health", ["health"]);
        answer.await.or_else(|error| {
            let told = error.api().filter(|refusal| refusal.status == 503);
            let told = told.and_then(|refusal| serde_json::from_str(&refusal.body).ok());
            told.ok_or(error)
        })
    }

    /// How the server is reached.
    ///
    /// # Errors
    ///
    /// When it cannot be reached, or does not want this caller.
    pub async fn server_info(&self) -> Result<ServerInfo> {
        self.get("asking how the server is reached", ["info"]).await
    }

    /// The servers that share the store; for admins.
    ///
    /// # Errors
    ///
    /// When the caller is none.
    pub async fn nodes(&self) -> Result<Vec<Node>> {
        let operation = "listing nodes";
        let answer: Wrapped = self.get(operation, ["nodes"]).await?;
        Ok(answer.page(operation, "nodes")?.items)
    }

    /// Timers that were given up; for admins.
    ///
    /// # Errors
    ///
    /// When the caller is none.
    pub async fn dead_timers(&self) -> Result<Vec<DeadTimer>> {
        let operation = "listing dead timers";
        let answer: Wrapped = self.get(operation, ["timers", "dead"]).await?;
        Ok(answer.page(operation, "timers")?.items)
    }

    /// Gives a dead timer another chance; for admins.
    ///
    /// # Errors
    ///
    /// When there is no such timer.
    pub async fn revive_timer(&self, subject: &str) -> Result<()> {
        let route = ["timers", "dead", subject, "revive"];
        let request = self.request(Method::POST, route);
        self.send("reviving a timer", Patience::Short, request)
            .await?;
        Ok(())
    }

    /// Instances of the installation that the database knows nothing of; for admins.
    ///
    /// # Errors
    ///
    /// When the caller is none.
    pub async fn unknown_instances(&self) -> Result<Vec<UnknownInstance>> {
        let operation = "listing unknown instances";
        let request = self.request(Method::GET, ["instances", "unknown"]);
        // Every place is asked for all it has.
        let answer: Wrapped = self.fetch(operation, Patience::Endless, request).await?;
        Ok(answer.page(operation, "instances")?.items)
    }

    /// Removes such an instance; for admins.
    ///
    /// # Errors
    ///
    /// When there is no such instance.
    pub async fn delete_unknown_instance(&self, id: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["instances", "unknown", id]);
        self.send("removing an unknown instance", Patience::Endless, request)
            .await?;
        Ok(())
    }
}
