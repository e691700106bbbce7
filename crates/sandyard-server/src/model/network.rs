//! Egress policies as this dialect parses and shows them.

use std::collections::BTreeMap;

use sandyard_core::network::{NetworkPolicy, PolicyError, Target};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};

use crate::app::App;
use crate::prelude::*;

/// Most bytes of a policy as JSON.
const MAX_BYTES: usize = 256 << 10;
/// Most targets of one request.
const MAX_TARGETS: usize = 1000;
/// The form of a target: a name or an address, then perhaps a port.
const TARGET: &str =
    r"^(\*|(\*\.)?[A-Za-z0-9_.-]+|[0-9a-fA-F:.]+(/[0-9]{1,3})?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$";
/// What a policy itself calls the word that E2B has beside it.
const INTERNET: [&str; 2] = ["allow_internet_access", "allowInternetAccess"];

/// Egress policy: which hosts a sandbox may reach. A list that is left out is empty. The spelling of E2B (`allowOut`)
/// is accepted too.
#[derive(ToSchema)]
#[schema(as = NetworkPolicy)]
#[expect(
    dead_code,
    reason = "describes what `read` takes, which says more about mistakes than serde can"
)]
pub(crate) struct NetworkRequest {
    /// Whether the sandbox may reach hosts that no entry names. Default: the operator's policy.
    allow_internet_access: Option<bool>,
    /// Hosts that may be reached in any case.
    #[schema(schema_with = allowed_schema)]
    allow_out: Option<Vec<String>>,
    /// Hosts that may not be reached.
    #[schema(schema_with = denied_schema)]
    deny_out: Option<Vec<String>>,
    /// Changes made to HTTP requests on their way out, by host. They apply to TLS connections only, unless the host is
    /// written `http://name`, and to every port, unless it has one (`api.example.com:8443`). A host is a name or
    /// `*.name`, never `*`. A rule does not allow its host.
    rules: Option<BTreeMap<String, Vec<RuleView>>>,
    /// Whether anyone may open the preview URLs of the sandbox's ports. Default: decided per port.
    allow_public_traffic: Option<bool>,
    /// Value of the `Host` header that programs in the sandbox see on preview requests. Default: the requested host.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[!-~]+$")]
    mask_request_host: Option<String>,
}

/// Egress policy in force. Values of headers are masked.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct NetworkView {
    /// Whether the sandbox may reach hosts that no entry names.
    allow_internet_access: bool,
    /// Hosts that may be reached in any case.
    allow_out: Vec<String>,
    /// Hosts that may not be reached, unless `allow_out` names them.
    deny_out: Vec<String>,
    /// Changes made to HTTP requests on their way out, by host. They apply to TLS connections only, unless the host is
    /// written `http://name`.
    rules: BTreeMap<String, Vec<RuleView>>,
    /// Whether anyone may open the preview URLs of the sandbox's ports. Null: decided per port.
    allow_public_traffic: Option<bool>,
    /// Value of the `Host` header that programs in the sandbox see on preview requests. Null: the requested host.
    mask_request_host: Option<String>,
}

/// Rule for requests to a host.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = NetworkRule)]
pub(crate) struct RuleView {
    /// Change that is made to each request.
    transform: TransformView,
}

/// Change of a request.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = NetworkTransform)]
pub(crate) struct TransformView {
    /// Headers to set, replacing what the program sent. Responses show every value as `***`.
    headers: BTreeMap<String, String>,
}

impl From<NetworkPolicy> for NetworkView {
    /// Masks values of headers once more, so that no caller has to.
    fn from(policy: NetworkPolicy) -> Self {
        let texts = |targets: Vec<Target>| targets.into_iter().map(String::from).collect();
        let hide = |(name, _): (String, String)| (name, "***".to_owned());
        Self {
            allow_internet_access: policy.allow_internet_access,
            allow_out: texts(policy.allow_out),
            deny_out: texts(policy.deny_out),
            rules: policy
                .rules
                .into_iter()
                .map(|(host, rules)| {
                    let view = |headers: BTreeMap<String, String>| RuleView {
                        transform: TransformView {
                            headers: headers.into_iter().map(hide).collect(),
                        },
                    };
                    let rules = rules.into_iter().map(|rule| view(rule.transform.headers));
                    (host.to_string(), rules.collect())
                })
                .collect(),
            allow_public_traffic: policy.allow_public_traffic,
            mask_request_host: policy.mask_request_host,
        }
    }
}

/// Hosts to allow or deny.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Targets {
    /// Hosts to allow or deny.
    #[schema(schema_with = changed_schema)]
    targets: Vec<String>,
}

impl Targets {
    /// Reads each of them; the first one that is none is named.
    pub(crate) fn read(self) -> ApiResult<Vec<Target>> {
        if self.targets.is_empty() || self.targets.len() > MAX_TARGETS {
            return Err(invalid_entry(
                "targets".to_owned(),
                format!(
                    "must list 1 to {MAX_TARGETS} hosts (got {})",
                    self.targets.len()
                ),
            ));
        }
        let read = |(at, text): (usize, &String)| {
            text.parse()
                .map_err(|error: sandyard_core::network::TargetError| {
                    invalid_entry(format!("targets[{at}]"), error.to_string())
                })
        };
        self.targets.iter().enumerate().map(read).collect()
    }
}

/// Defaults for fields that a policy leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyDefaults {
    allow_internet_access: bool,
}

impl From<&App> for PolicyDefaults {
    fn from(app: &App) -> Self {
        Self {
            allow_internet_access: app.settings().allow_internet_access,
        }
    }
}

/// Parses a policy. Errors name the entry with `place` as prefix: `network.allow_out[2]`.
pub(crate) fn parse(
    prefix: &str,
    mut policy: Value,
    defaults: PolicyDefaults,
) -> ApiResult<NetworkPolicy> {
    let text = policy.to_string();
    // Databases do not accept NUL, which JSON escapes like this.
    if text.len() > MAX_BYTES || text.contains("\\u0000") {
        let field = if prefix.is_empty() { "network" } else { prefix };
        let problem = "must have at most 256 KiB and no NUL character".to_owned();
        return Err(invalid_entry(field.to_owned(), problem));
    }
    if let Value::Object(fields) = &mut policy
        && internet_access(fields).is_none()
    {
        // If the operator denies by default, a policy that only adds entries does not change that.
        fields.remove(INTERNET[1]);
        fields.insert(
            INTERNET[0].to_owned(),
            defaults.allow_internet_access.into(),
        );
    }
    NetworkPolicy::from_value(policy).map_err(|PolicyError { field, problem }| {
        let field = match (prefix, field.as_str()) {
            ("", _) => field,
            // Name of the field as a whole.
            (_, "network") => prefix.to_owned(),
            _ => format!("{prefix}.{field}"),
        };
        invalid_entry(field, problem)
    })
}

/// Combines the two fields of a create about the network into one policy. Returns `None` if both are absent.
pub(crate) fn parse_with_access(
    network: Option<Value>,
    allow_internet_access: Option<bool>,
    defaults: PolicyDefaults,
) -> ApiResult<Option<NetworkPolicy>> {
    let Some(allowed) = allow_internet_access else {
        return network
            .map(|policy| parse("network", policy, defaults))
            .transpose();
    };
    let mut policy = network.unwrap_or_else(|| Value::Object(Map::new()));
    if let Value::Object(fields) = &mut policy {
        match internet_access(fields) {
            Some(value) if *value != Value::Bool(allowed) => {
                return Err(invalid_entry(
                    INTERNET[0].to_owned(),
                    "`network` says the opposite; give it in one place only".to_owned(),
                ));
            }
            Some(_) => {}
            None => {
                fields.insert(INTERNET[0].to_owned(), allowed.into());
            }
        }
    }
    parse("network", policy, defaults).map(Some)
}

/// Value of `allow_internet_access` in a policy, in either spelling.
fn internet_access(fields: &Map<String, Value>) -> Option<&Value> {
    INTERNET
        .iter()
        .filter_map(|name| fields.get(*name))
        .find(|value| !value.is_null())
}

/// Error that names the invalid entry.
pub(crate) fn invalid_entry(field: String, problem: String) -> ApiError {
    ApiError::new(ErrorKind::BadRequest, format!("`{field}`: {problem}")).field(Some(field))
}

fn allowed_schema() -> Schema {
    targets_schema(
        0,
        "Hosts that the sandbox may reach in any case, at most 1,000: names, `*.name`, addresses and networks, each with or \
         without `:port`.",
    )
}

fn denied_schema() -> Schema {
    targets_schema(
        0,
        "Hosts that the sandbox may not reach, unless `allow_out` names them, at most 1,000, in the same form.",
    )
}

fn changed_schema() -> Schema {
    targets_schema(
        1,
        "Hosts to allow or deny, 1 to 1,000: names, `*.name`, addresses and networks, each with or without `:port`.",
    )
}

fn targets_schema(least: usize, description: &str) -> Schema {
    let target = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(1))
        .max_length(Some(260))
        .pattern(Some(TARGET))
        .examples(["pypi.org", "*.example.com:443", "203.0.113.0/24"])
        .build();
    let array = ArrayBuilder::new()
        .items(RefOr::T(Schema::Object(target)))
        .min_items(Some(least))
        .max_items(Some(MAX_TARGETS))
        .description(Some(description));
    Schema::Array(array.build())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OPEN: PolicyDefaults = PolicyDefaults {
        allow_internet_access: true,
    };

    fn field(error: ApiError) -> Option<String> {
        let response = axum::response::IntoResponse::into_response(error);
        assert_eq!(response.status(), 400);
        let body = response.extensions().get::<crate::error::ErrorBody>();
        body.unwrap().field.clone()
    }

    #[test]
    fn both_words_about_the_network_are_one() {
        let read = |network: Value, allowed| {
            let network = Some(network).filter(|network| !network.is_null());
            parse_with_access(network, allowed, OPEN)
                .map(|policy| policy.map(|it| it.allow_internet_access))
        };
        assert_eq!(read(Value::Null, None).unwrap(), None);
        assert_eq!(read(Value::Null, Some(false)).unwrap(), Some(false));
        assert_eq!(read(json!({}), None).unwrap(), Some(true));
        assert_eq!(read(json!({}), Some(false)).unwrap(), Some(false));
        let value = json!({"allowInternetAccess": false});
        assert_eq!(read(value.clone(), Some(false)).unwrap(), Some(false));
        let refused = read(value, Some(true)).unwrap_err();
        assert_eq!(field(refused).as_deref(), Some("allow_internet_access"));
    }

    #[test]
    fn a_closed_server_stays_closed_to_those_who_do_not_say() {
        let closed = PolicyDefaults {
            allow_internet_access: false,
        };
        let read = |policy| parse("network", policy, closed).unwrap();
        assert!(!read(json!({"allow_out": ["pypi.org"]})).allow_internet_access);
        assert!(!read(json!({"allowInternetAccess": null})).allow_internet_access);
        assert!(read(json!({"allowInternetAccess": true})).allow_internet_access);
    }

    #[test]
    fn values_of_headers_are_hidden_in_every_policy() {
        let policy = json!({"rules": {"api.example.com": [{"transform": {"headers": {"X-Key": "s3cret"}}}]}});
        let policy = parse("network", policy, OPEN).unwrap();
        let json = serde_json::to_value(NetworkView::from(policy)).unwrap();
        let headers = &json["rules"]["api.example.com"][0]["transform"]["headers"];
        assert_eq!(headers, &json!({"X-Key": "***"}));
    }

    #[test]
    fn a_policy_that_is_too_large_is_refused_before_it_is_read() {
        let names: Vec<String> = (0..20_000).map(|n| format!("n{n}.example.com")).collect();
        let refused = parse("network", json!({ "allow_out": names }), OPEN).unwrap_err();
        assert_eq!(field(refused).as_deref(), Some("network"));
    }
}
