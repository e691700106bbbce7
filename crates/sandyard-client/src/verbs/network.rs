//! What sandboxes reach.

use reqwest::Method;
use serde::Serialize;
use serde_json::json;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::follow::Follow;
use crate::model::{Flow, FlowFilter, Network};
use crate::request::Patience;

impl Client {
    /// What a sandbox may reach. Wakes nothing.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn network(&self, sandbox: &str) -> Result<Network> {
        let route = ["sandboxes", sandbox, "network"];
        self.get("looking at a sandbox's network", route).await
    }

    /// Replaces what a sandbox may reach, all of it: a [`NetworkPolicy`](crate::NetworkPolicy), or the JSON of one.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox, or an entry makes no sense: it is named.
    pub async fn set_network(
        &self,
        sandbox: &str,
        policy: &(impl Serialize + Sync),
    ) -> Result<Network> {
        let request = self
            .request(Method::PUT, ["sandboxes", sandbox, "network"])
            .json(policy);
        let operation = "setting what a sandbox may reach";
        self.fetch(operation, Patience::Short, request).await
    }

    /// Lets a sandbox reach these targets too.
    ///
    /// # Errors
    ///
    /// As [`Client::set_network`].
    pub async fn allow_network(&self, sandbox: &str, targets: &[String]) -> Result<Network> {
        let route = ["sandboxes", sandbox, "network", "allow"];
        let body = json!({ "targets": targets });
        self.post("letting a sandbox reach something", route, &body)
            .await
    }

    /// Lets a sandbox reach these targets no more.
    ///
    /// # Errors
    ///
    /// As [`Client::set_network`].
    pub async fn deny_network(&self, sandbox: &str, targets: &[String]) -> Result<Network> {
        let route = ["sandboxes", sandbox, "network", "deny"];
        let body = json!({ "targets": targets });
        self.post("keeping a sandbox from something", route, &body)
            .await
    }

    /// What a sandbox tried to reach, oldest first, also after its deletion.
    ///
    /// # Errors
    ///
    /// When there was no such sandbox.
    pub async fn flows(&self, sandbox: &str, filter: &FlowFilter) -> Result<Vec<Flow>> {
        let operation = "listing flows";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "flows"])
            .query(filter);
        let answer: Wrapped = self.fetch(operation, Patience::Short, request).await?;
        Ok(answer.page(operation, "flows")?.items)
    }

    /// What a sandbox tried to reach, and what it will. The filter's limit says with how many of the newest to begin.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn follow_flows(&self, sandbox: &str, filter: &FlowFilter) -> Result<Follow<Flow>> {
        let mut url = self.route(["sandboxes", sandbox, "flows"]);
        let pairs = [
            ("verdict", filter.verdict.clone()),
            ("after", filter.after_seq.map(|after| after.to_string())),
            ("limit", filter.limit.map(|limit| limit.to_string())),
            ("follow", Some("true".to_owned())),
        ];
        for (name, value) in pairs {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        Follow::open(self, "following flows", url).await
    }
}
