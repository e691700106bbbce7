//! A policy as clients send it, read member by member, so that an error can say which one it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::grant::BoundHost;
use super::policy::{HostRule, NetworkPolicy, PolicyError, Transform};
use super::target::Target;

/// Name of the complete policy in errors.
const ROOT: &str = "network";

/// Reads a policy; see [`NetworkPolicy`] for how it is spelled.
pub(super) fn policy(value: Value) -> Result<NetworkPolicy, PolicyError> {
    let mut members = Members::new(ROOT, value)?;
    let default = NetworkPolicy::default();
    let policy = NetworkPolicy {
        allow_internet_access: members
            .take("allow_internet_access", "allowInternetAccess", truth)?
            .unwrap_or(default.allow_internet_access),
        allow_out: members
            .take("allow_out", "allowOut", targets)?
            .unwrap_or_default(),
        deny_out: members
            .take("deny_out", "denyOut", targets)?
            .unwrap_or_default(),
        rules: members.take("rules", "rules", rules)?.unwrap_or_default(),
        allow_public_traffic: members.take("allow_public_traffic", "allowPublicTraffic", truth)?,
        mask_request_host: members.take("mask_request_host", "maskRequestHost", text)?,
    };
    members.end()?;
    Ok(policy)
}

/// The members of an object that are still to be read.
struct Members {
    path: String,
    remaining: Map<String, Value>,
    names: Vec<&'static str>,
}

impl Members {
    fn new(path: impl Into<String>, value: Value) -> Result<Self, PolicyError> {
        let path = path.into();
        match value {
            Value::Object(remaining) => Ok(Self {
                path,
                remaining,
                names: Vec::new(),
            }),
            Value::Null => Ok(Self {
                path,
                remaining: Map::new(),
                names: Vec::new(),
            }),
            _ => Err(PolicyError::new(path, "must be an object")),
        }
    }

    /// Reads one, by its name or by the one E2B has for it; `None` if it is not there or `null`.
    fn take<T>(
        &mut self,
        name: &'static str,
        other: &'static str,
        read: impl FnOnce(&str, Value) -> Result<T, PolicyError>,
    ) -> Result<Option<T>, PolicyError> {
        self.names.push(name);
        let path = self.path_of(name);
        let mut given = [name, other]
            .into_iter()
            .filter_map(|name| self.remaining.remove(name))
            .filter(|value| !value.is_null());
        let value = given.next();
        if given.next().is_some() {
            return Err(PolicyError::new(
                path,
                format!("is given twice, also as `{other}`"),
            ));
        }
        value.map(|value| read(&path, value)).transpose()
    }

    /// Refuses what was not read.
    fn end(self) -> Result<(), PolicyError> {
        match self.remaining.keys().next() {
            Some(name) => {
                let names = self.names.join("`, `");
                Err(PolicyError::new(
                    self.path_of(name),
                    format!("is unknown; there are `{names}`"),
                ))
            }
            None => Ok(()),
        }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path == ROOT {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }
}

fn truth(path: &str, value: Value) -> Result<bool, PolicyError> {
    value
        .as_bool()
        .ok_or_else(|| PolicyError::new(path, "must be true or false"))
}

fn text(path: &str, value: Value) -> Result<String, PolicyError> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(PolicyError::new(path, "must be a text")),
    }
}

/// The entries of a list, each with its place.
fn list(path: &str, value: Value) -> Result<impl Iterator<Item = (String, Value)>, PolicyError> {
    match value {
        Value::Array(entries) => {
            let place = move |(index, entry)| (format!("{path}[{index}]"), entry);
            Ok(entries.into_iter().enumerate().map(place))
        }
        _ => Err(PolicyError::new(path, "must be a list")),
    }
}

fn targets(path: &str, value: Value) -> Result<Vec<Target>, PolicyError> {
    let read = |(path, entry): (String, Value)| {
        let entry = text(&path, entry)?;
        entry
            .parse::<Target>()
            .map_err(|error| PolicyError::new(path, error.to_string()))
    };
    list(path, value)?.map(read).collect()
}

fn rules(path: &str, value: Value) -> Result<BTreeMap<BoundHost, Vec<HostRule>>, PolicyError> {
    let hosts = Members::new(path, value)?;
    let mut rules = BTreeMap::new();
    for (host, value) in hosts.remaining {
        let path = format!("{path}.{host}");
        let host: BoundHost = host
            .parse()
            .map_err(|error| PolicyError::new(&path, format!("{error}")))?;
        let of_host = match value {
            Value::Null => Vec::new(),
            value => list(&path, value)?.map(rule).collect::<Result<_, _>>()?,
        };
        if rules.insert(host, of_host).is_some() {
            return Err(PolicyError::new(path, "is given twice, spelled otherwise"));
        }
    }
    Ok(rules)
}

fn rule((path, value): (String, Value)) -> Result<HostRule, PolicyError> {
    let mut members = Members::new(path, value)?;
    let transform = members
        .take("transform", "transform", transform)?
        .unwrap_or_default();
    members.end()?;
    Ok(HostRule { transform })
}

fn transform(path: &str, value: Value) -> Result<Transform, PolicyError> {
    let mut members = Members::new(path, value)?;
    let headers = members
        .take("headers", "headers", headers)?
        .unwrap_or_default();
    members.end()?;
    Ok(Transform { headers })
}

fn headers(path: &str, value: Value) -> Result<BTreeMap<String, String>, PolicyError> {
    let headers = Members::new(path, value)?.remaining;
    headers
        .into_iter()
        .map(|(name, value)| {
            let value = text(&format!("{path}.{name}"), value)?;
            Ok((name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(value: Value) -> (String, String) {
        let PolicyError { field, problem } = policy(value).expect_err("a refusal");
        (field, problem)
    }

    #[test]
    fn e2b_spelling_is_read_as_well() {
        let own = json!({
            "allow_internet_access": false, "allow_out": ["a.org"], "deny_out": ["10.0.0.0/8"], "allow_public_traffic": false,
            "mask_request_host": "localhost",
        });
        let other = json!({
            "allowInternetAccess": false, "allowOut": ["a.org"], "denyOut": ["10.0.0.0/8"], "allowPublicTraffic": false,
            "maskRequestHost": "localhost",
        });
        let read = policy(own).expect("own spelling");
        assert!(!read.allow_internet_access && read.allow_public_traffic == Some(false));
        assert_eq!(policy(other), Ok(read));
    }

    #[test]
    fn null_is_the_default_everywhere() {
        let nulls = json!({
            "allow_internet_access": null, "allowOut": null, "denyOut": null, "rules": null, "allowPublicTraffic": null,
            "maskRequestHost": null,
        });
        for value in [nulls, json!({}), json!(null)] {
            assert_eq!(policy(value), Ok(NetworkPolicy::default()));
        }
        let read = policy(
            json!({"rules": {"a.org": [{"transform": null}, {"transform": {"headers": null}}], "b.org": null}}),
        );
        let rules = read.expect("rules").rules;
        assert_eq!(rules.values().map(Vec::len).collect::<Vec<_>>(), [2, 0]);
        // A null beside the value in the other spelling is no second value.
        let read = policy(json!({"allow_out": null, "allowOut": ["a.org"]})).expect("one value");
        assert_eq!(read.allow_out.len(), 1);
    }

    #[test]
    fn errors_say_where() {
        for (value, field) in [
            (json!([]), "network"),
            (json!({"allow": []}), "allow"),
            (
                json!({"allow_internet_access": "no"}),
                "allow_internet_access",
            ),
            (json!({"allowOut": "a.org"}), "allow_out"),
            (
                json!({"allowOut": ["a.org", "b.org", "http://c.org"]}),
                "allow_out[2]",
            ),
            (json!({"deny_out": [1]}), "deny_out[0]"),
            (json!({"deny_out": [null]}), "deny_out[0]"),
            (json!({"allow_out": [], "allowOut": []}), "allow_out"),
            (json!({"allow_public_traffic": 1}), "allow_public_traffic"),
            (json!({"mask_request_host": 1}), "mask_request_host"),
            (json!({"rules": []}), "rules"),
            (json!({"rules": {"10.0.0.1": []}}), "rules.10.0.0.1"),
            (json!({"rules": {"*": []}}), "rules.*"),
            (json!({"rules": {"http://*:80": []}}), "rules.http://*:80"),
            (json!({"rules": {"a.org/path": []}}), "rules.a.org/path"),
            (
                json!({"rules": {"a.org": [], "https://a.org": []}}),
                "rules.https://a.org",
            ),
            (json!({"rules": {"a.org": {}}}), "rules.a.org"),
            (json!({"rules": {"a.org": [], "A.org": []}}), "rules.a.org"),
            (
                json!({"rules": {"a.org": [{}, {"change": {}}]}}),
                "rules.a.org[1].change",
            ),
            (
                json!({"rules": {"a.org": [{"transform": {"header": {}}}]}}),
                "rules.a.org[0].transform.header",
            ),
            (
                json!({"rules": {"a.org": [{"transform": {"headers": {"x-a": 1}}}]}}),
                "rules.a.org[0].transform.headers.x-a",
            ),
        ] {
            assert_eq!(refused(value.clone()).0, field, "{value}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        let (_, problem) = refused(json!({"allow_out": ["a b"]}));
        assert_eq!(
            problem,
            "a b".parse::<Target>().expect_err("no target").to_string()
        );
        let (_, problem) = refused(json!({"rules": {"*": []}}));
        assert!(
            problem.contains("every host") && problem.contains("`*.example.com`"),
            "{problem}"
        );
        let (_, problem) = refused(json!({"allow": []}));
        assert!(problem.contains("`allow_out`"), "{problem}");
        let (_, problem) = refused(json!({"allow_out": [], "allowOut": []}));
        assert!(problem.contains("allowOut"), "{problem}");
    }
}
