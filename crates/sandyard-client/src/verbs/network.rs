//! Egress policies and network activity.

use reqwest::Method;
use serde::Serialize;
use serde_json::json;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::follow::Follow;
use crate::model::{Flow, FlowFilter, Network};
use crate::request::TimeLimit;

impl Client {
    /// Returns the egress policy of a sandbox. Does not wake it.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn network(&self, sandbox: &str) -> Result<Network> {
        let route = ["sandboxes", sandbox, "network"];
        self.get("fetching the egress policy", route).await
    }

    /// Replaces the whole egress policy of a sandbox: a [`NetworkPolicy`](crate::NetworkPolicy), or the JSON of one.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist, or an entry is not valid; the error names it.
    pub async fn set_network(
        &self,
        sandbox: &str,
        policy: &(impl Serialize + Sync),
    ) -> Result<Network> {
        let request = self
            .request(Method::PUT, ["sandboxes", sandbox, "network"])
            .json(policy);
        let operation = "setting the egress policy";
        self.fetch(operation, TimeLimit::Short, request).await
    }

    /// Allows a sandbox to reach these targets.
    ///
    /// # Errors
    ///
    /// As [`Client::set_network`].
    pub async fn allow_network(&self, sandbox: &str, targets: &[String]) -> Result<Network> {
        let route = ["sandboxes", sandbox, "network", "allow"];
        let body = json!({ "targets": targets });
        self.post("allowing egress", route, &body).await
    }

    /// Denies a sandbox to reach these targets.
    ///
    /// # Errors
    ///
    /// As [`Client::set_network`].
    pub async fn deny_network(&self, sandbox: &str, targets: &[String]) -> Result<Network> {
        let route = ["sandboxes", sandbox, "network", "deny"];
        let body = json!({ "targets": targets });
        self.post("denying egress", route, &body).await
    }

    /// Lists the network activity of a sandbox, oldest first, also after its deletion.
    ///
    /// # Errors
    ///
    /// If the sandbox never existed.
    pub async fn flows(&self, sandbox: &str, filter: &FlowFilter) -> Result<Vec<Flow>> {
        let operation = "listing flows";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "flows"])
            .query(filter);
        let answer: Wrapped = self.fetch(operation, TimeLimit::Short, request).await?;
        Ok(answer.page(operation, "flows")?.items)
    }

    /// Lists the network activity of a sandbox and streams new flows. The limit of the filter is the number of newest
    /// flows to start with.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
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
