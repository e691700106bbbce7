//! Network policies in E2B's form, and `PUT /sandboxes/{id}/network`.

use std::collections::BTreeMap;

use sandyard_core::NetworkPolicy;
use sandyard_core::network::Target;
use serde_json::{Map, Value};

use super::name::{self, SandboxParam};
use crate::model::network::{self as policy, PolicyDefaults, invalid_entry};
use crate::prelude::*;

/// Prefix of variables that only E2B's gateway replaces.
const E2B_VARIABLE: &str = "${e2b.";

/// Egress policy of a sandbox for E2B clients.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bNetwork)]
pub(crate) struct Network {
    /// Hosts that may be reached in any case: names, `*.name`, addresses and networks.
    allow_out: Option<Vec<String>>,
    /// Hosts that may not be reached, unless `allowOut` names them.
    deny_out: Option<Vec<String>>,
    /// Headers to set on requests, by host: `{"api.example.com": [{"transform": {"headers": {…}}}]}`.
    #[schema(value_type = Option<Object>)]
    rules: Option<Value>,
    /// Whether anyone may open the sandbox's ports.
    allow_public_traffic: Option<bool>,
    /// Value of the `Host` header that programs in the sandbox see.
    mask_request_host: Option<String>,
    /// Proxy for outgoing connections. Not supported: the request is rejected if it is set.
    #[schema(value_type = Option<Object>)]
    egress_proxy: Option<Value>,
    /// Ports that speak TLS inside. Not supported: the request is rejected if it is set.
    https_ports: Option<Vec<u16>>,
}

impl Network {
    /// Converts it to a policy; none if it is empty.
    pub(crate) fn into_policy(
        self,
        allow_internet_access: Option<bool>,
        defaults: PolicyDefaults,
    ) -> ApiResult<Option<NetworkPolicy>> {
        if self.egress_proxy.is_some() {
            return Err(unavailable(
                "network.egressProxy",
                "a proxy for outgoing connections",
            ));
        }
        if self.https_ports.is_some_and(|ports| !ports.is_empty()) {
            let what = "ports that use TLS inside the sandbox";
            return Err(unavailable("network.httpsPorts", what));
        }
        let rules = self.rules.filter(|rules| !rules.is_null());
        if rules.as_ref().is_some_and(has_e2b_variable) {
            return Err(unavailable(
                "network.rules",
                "variables of E2B (`${e2b.…}`)",
            ));
        }
        let mut fields = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        set("allowOut", self.allow_out.map(Value::from));
        set("denyOut", self.deny_out.map(Value::from));
        set("rules", rules);
        set(
            "allowPublicTraffic",
            self.allow_public_traffic.map(Value::from),
        );
        set("maskRequestHost", self.mask_request_host.map(Value::from));
        let policy = (!fields.is_empty()).then_some(Value::Object(fields));
        policy::parse_with_access(policy, allow_internet_access, defaults)
    }
}

/// Says whether a rule contains a variable that only E2B's gateway replaces.
fn has_e2b_variable(rules: &Value) -> bool {
    match rules {
        Value::String(text) => text.contains(E2B_VARIABLE),
        Value::Array(entries) => entries.iter().any(has_e2b_variable),
        Value::Object(fields) => fields.values().any(has_e2b_variable),
        _ => false,
    }
}

/// The error for a feature of E2B that this server does not have.
pub(crate) fn unavailable(field: &str, what: &str) -> ApiError {
    invalid_entry(
        field.to_owned(),
        format!("this server does not offer {what}; leave it out"),
    )
}

/// Egress policy in force. Values of headers are masked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bNetworkView)]
pub(crate) struct NetworkView {
    /// Hosts that may be reached in any case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    allow_out: Vec<String>,
    /// Hosts that may not be reached, unless `allowOut` names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    deny_out: Vec<String>,
    /// Headers set on requests, by host. Values are masked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object, required = false)]
    rules: BTreeMap<String, Value>,
    /// Whether anyone may open the sandbox's ports.
    allow_public_traffic: bool,
    /// Value of the `Host` header that programs in the sandbox see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    mask_request_host: Option<String>,
}

impl From<NetworkPolicy> for NetworkView {
    fn from(policy: NetworkPolicy) -> Self {
        let texts = |targets: Vec<Target>| targets.into_iter().map(String::from).collect();
        let rules = policy.rules.into_iter().map(|(host, rules)| {
            let rules: Vec<Value> = rules
                .into_iter()
                .map(|rule| {
                    let names = rule.transform.headers.into_keys();
                    let headers: Map<_, _> = names.map(|name| (name, "***".into())).collect();
                    serde_json::json!({"transform": {"headers": headers}})
                })
                .collect();
            (host.to_string(), Value::from(rules))
        });
        Self {
            rules: rules.collect(),
            allow_out: texts(policy.allow_out),
            deny_out: texts(policy.deny_out),
            allow_public_traffic: policy.allow_public_traffic.unwrap_or(false),
            mask_request_host: policy.mask_request_host,
        }
    }
}

/// New egress policy of a sandbox. What is left out is reset.
#[derive(Deserialize, ToSchema)]
#[schema(as = E2bNetworkUpdate)]
pub(crate) struct NetworkUpdate {
    #[serde(flatten)]
    network: Network,
    /// Whether the sandbox may reach hosts that no entry names.
    allow_internet_access: Option<bool>,
}

/// Replace the egress policy for E2B clients
///
/// Replaces which hosts a sandbox may reach; what the request leaves out is reset. Access to the sandbox's ports stays
/// as it is.
#[utoipa::path(
    put, path = "/e2b/sandboxes/{id}/network", tag = "e2b", params(SandboxParam), request_body = NetworkUpdate,
    responses((status = 204, description = "Egress policy replaced."))
)]
pub(crate) async fn e2b_set_network(
    call: Call,
    target: SandboxParam,
    Body(update): Body<NetworkUpdate>,
) -> ApiResult<StatusCode> {
    let sandbox = name::existing(&call, &target.id).await?;
    let before = call.service().policy_of(&sandbox)?;
    let defaults = PolicyDefaults::from(&call.app);
    let requested = update
        .network
        .into_policy(update.allow_internet_access, defaults)?;
    let mut policy = match requested {
        Some(policy) => policy,
        None => call.service().settings().default_network.clone(),
    };
    policy.allow_public_traffic = before.allow_public_traffic;
    policy.mask_request_host = before.mask_request_host;
    call.service()
        .set_network(&call.caller, sandbox.id.as_str(), policy)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
