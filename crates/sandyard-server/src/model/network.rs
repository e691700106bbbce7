//! What a sandbox may reach, as this dialect reads and shows it.

use std::collections::BTreeMap;

use sandyard_core::ErrorKind;
use sandyard_core::network::{NetworkPolicy, PolicyError, Target};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};

use crate::app::App;
use crate::error::ApiError;

/// Most bytes of a policy as JSON.
const MAX_BYTES: usize = 256 << 10;
/// Most targets of one request.
const MAX_TARGETS: usize = 1000;
/// The form of a target: a name or an address, then perhaps a port.
const TARGET: &str =
    r"^(\*|(\*\.)?[A-Za-z0-9_.-]+|[0-9a-fA-F:.]+(/[0-9]{1,3})?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$";
/// What a policy itself calls the word that E2B has beside it.
const INTERNET: [&str; 2] = ["allow_internet_access", "allowInternetAccess"];

/// What a sandbox shall reach. A list that is left out is empty. E2B's spelling (`allowOut`) is understood too.
#[derive(ToSchema)]
#[schema(as = NetworkPolicy)]
#[expect(
    dead_code,
    reason = "describes what `read` takes, which says more about mistakes than serde can"
)]
pub(crate) struct NetworkRequest {
    /// Whether what no entry names may be reached; as the operator says if it is left out.
    allow_internet_access: Option<bool>,
    /// What may be reached in any case: names, `*.names`, addresses and networks, with or without `:port`.
    #[schema(schema_with = targets_schema)]
    allow_out: Option<Vec<String>>,
    /// What may not, unless `allow_out` names it.
    #[schema(schema_with = targets_schema)]
    deny_out: Option<Vec<String>>,
    /// By host, what is done to requests on their way: over TLS alone unless the host is written `http://name`, and on every
    /// port unless it has one (`api.example.com:8443`). A host is a name or `*.name`, never `*`. Naming one here does not
    /// allow it.
    rules: Option<BTreeMap<String, Vec<RuleView>>>,
    /// Whether anybody may open the previews of its ports.
    allow_public_traffic: Option<bool>,
    /// The `Host` that servers inside see on previews.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[!-~]+$")]
    mask_request_host: Option<String>,
}

/// What a sandbox may reach. Values of headers are not shown.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct NetworkView {
    /// Whether what no entry names may be reached.
    allow_internet_access: bool,
    /// What may be reached in any case.
    allow_out: Vec<String>,
    /// What may not, unless `allow_out` names it.
    deny_out: Vec<String>,
    /// By host, what is done to requests on their way: over TLS alone unless the host is written `http://name`.
    rules: BTreeMap<String, Vec<RuleView>>,
    /// Whether anybody may open the previews of its ports; none: up to each port.
    allow_public_traffic: Option<bool>,
    /// The `Host` that servers inside see on previews; none: the one that was asked for.
    mask_request_host: Option<String>,
}

/// What is done to a request.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = NetworkRule)]
pub(crate) struct RuleView {
    transform: TransformView,
}

/// How a request is changed.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = NetworkTransform)]
pub(crate) struct TransformView {
    /// Headers that are set, whatever the program sent. In answers every value is `***`.
    headers: BTreeMap<String, String>,
}

impl From<NetworkPolicy> for NetworkView {
    /// Hides values of headers once more: nobody shall depend on who hid them before.
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

/// Targets to be opened or closed.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Targets {
    /// Names, `*.names`, addresses and networks, with or without `:port`.
    #[schema(schema_with = some_targets_schema)]
    targets: Vec<String>,
}

impl Targets {
    /// Reads each of them; the first one that is none is named.
    pub(crate) fn read(self) -> Result<Vec<Target>, ApiError> {
        if self.targets.is_empty() || self.targets.len() > MAX_TARGETS {
            return Err(refused(
                "targets".to_owned(),
                format!("name 1 to {MAX_TARGETS} targets"),
            ));
        }
        let read = |(at, text): (usize, &String)| {
            text.parse()
                .map_err(|error: sandyard_core::network::TargetError| {
                    refused(format!("targets[{at}]"), error.to_string())
                })
        };
        self.targets.iter().enumerate().map(read).collect()
    }
}

/// What counts where a policy does not say.
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

/// Reads a policy; what is wrong with it is named with `place` in front: `network.allow_out[2]`.
pub(crate) fn read(
    place: &str,
    mut policy: Value,
    otherwise: PolicyDefaults,
) -> Result<NetworkPolicy, ApiError> {
    let text = policy.to_string();
    // Databases take no NUL, which JSON writes like this.
    if text.len() > MAX_BYTES || text.contains("\\u0000") {
        let field = if place.is_empty() { "network" } else { place };
        let problem = "it is too large or holds a NUL character".to_owned();
        return Err(refused(field.to_owned(), problem));
    }
    if let Value::Object(fields) = &mut policy
        && said_internet(fields).is_none()
    {
        // A closed server stays closed to those who only name an entry or two.
        fields.remove(INTERNET[1]);
        fields.insert(
            INTERNET[0].to_owned(),
            otherwise.allow_internet_access.into(),
        );
    }
    NetworkPolicy::from_value(policy).map_err(|PolicyError { field, problem }| {
        let field = match (place, field.as_str()) {
            ("", _) => field,
            // What the whole of it is called.
            (_, "network") => place.to_owned(),
            _ => format!("{place}.{field}"),
        };
        refused(field, problem)
    })
}

/// Reads the two words of a create about the network, which are one policy; none: nothing was said.
pub(crate) fn read_both(
    network: Option<Value>,
    allow_internet_access: Option<bool>,
    otherwise: PolicyDefaults,
) -> Result<Option<NetworkPolicy>, ApiError> {
    let Some(allowed) = allow_internet_access else {
        return network
            .map(|policy| read("network", policy, otherwise))
            .transpose();
    };
    let mut policy = network.unwrap_or_else(|| Value::Object(Map::new()));
    if let Value::Object(fields) = &mut policy {
        match said_internet(fields) {
            Some(said) if *said != Value::Bool(allowed) => {
                return Err(refused(
                    INTERNET[0].to_owned(),
                    "`network` says otherwise: say it once".to_owned(),
                ));
            }
            Some(_) => {}
            None => {
                fields.insert(INTERNET[0].to_owned(), allowed.into());
            }
        }
    }
    read("network", policy, otherwise).map(Some)
}

/// What a policy says about the rest of the internet, in either spelling.
fn said_internet(fields: &Map<String, Value>) -> Option<&Value> {
    INTERNET
        .iter()
        .filter_map(|name| fields.get(*name))
        .find(|said| !said.is_null())
}

/// A refusal that names the entry.
pub(crate) fn refused(field: String, problem: String) -> ApiError {
    ApiError::new(ErrorKind::BadRequest, format!("`{field}`: {problem}")).field(Some(field))
}

fn targets_schema() -> Schema {
    array(0)
}

fn some_targets_schema() -> Schema {
    array(1)
}

fn array(least: usize) -> Schema {
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
        .max_items(Some(MAX_TARGETS));
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
            read_both(network, allowed, OPEN)
                .map(|policy| policy.map(|it| it.allow_internet_access))
        };
        assert_eq!(read(Value::Null, None).unwrap(), None);
        assert_eq!(read(Value::Null, Some(false)).unwrap(), Some(false));
        assert_eq!(read(json!({}), None).unwrap(), Some(true));
        assert_eq!(read(json!({}), Some(false)).unwrap(), Some(false));
        let said = json!({"allowInternetAccess": false});
        assert_eq!(read(said.clone(), Some(false)).unwrap(), Some(false));
        let refused = read(said, Some(true)).unwrap_err();
        assert_eq!(field(refused).as_deref(), Some("allow_internet_access"));
    }

    #[test]
    fn a_closed_server_stays_closed_to_those_who_do_not_say() {
        let closed = PolicyDefaults {
            allow_internet_access: false,
        };
        let read = |policy| read("network", policy, closed).unwrap();
        assert!(!read(json!({"allow_out": ["pypi.org"]})).allow_internet_access);
        assert!(!read(json!({"allowInternetAccess": null})).allow_internet_access);
        assert!(read(json!({"allowInternetAccess": true})).allow_internet_access);
    }

    #[test]
    fn values_of_headers_are_hidden_whoever_gives_the_policy() {
        let policy = json!({"rules": {"api.example.com": [{"transform": {"headers": {"X-Key": "s3cret"}}}]}});
        let policy = read("network", policy, OPEN).unwrap();
        let shown = serde_json::to_value(NetworkView::from(policy)).unwrap();
        let headers = &shown["rules"]["api.example.com"][0]["transform"]["headers"];
        assert_eq!(headers, &json!({"X-Key": "***"}));
    }

    #[test]
    fn a_policy_that_is_too_large_is_refused_before_it_is_read() {
        let names: Vec<String> = (0..20_000).map(|n| format!("n{n}.example.com")).collect();
        let refused = read("network", json!({ "allow_out": names }), OPEN).unwrap_err();
        assert_eq!(field(refused).as_deref(), Some("network"));
    }
}
