//! Configuration of a user's MCP servers.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use http::{HeaderName, HeaderValue};
use reqwest::Url;
use serde_json::{Map, Value};

/// Maximum number of servers.
pub(crate) const MAX_SERVERS: usize = 20;
/// Maximum length of a server's name.
const MAX_NAME: usize = 64;
/// Headers that the protocol uses.
const RESERVED: &[&str] = &[
    "accept",
    "mcp-session-id",
    "last-event-id",
    "content-type",
    "host",
    "content-length",
];

/// How to connect to a server.
#[derive(Clone, PartialEq)]
pub(crate) enum Config {
    /// A program that uses its standard input and output.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables in addition to ours.
        env: BTreeMap<String, String>,
    },
    /// A server at a URL.
    Address {
        /// The URL.
        url: Url,
        /// Headers of every request.
        headers: HashMap<HeaderName, HeaderValue>,
        /// Whether the server uses the older HTTP+SSE transport.
        is_sse: bool,
    },
}

/// Hides environments and headers, which contain keys.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { command, .. } => f.debug_tuple("Program").field(command).finish(),
            Self::Address { .. } => f.write_str("Address(…)"),
        }
    }
}

/// Parses `{"mcpServers": {…}}`. Errors name the field.
pub(crate) fn read(body: &Value) -> Result<BTreeMap<String, Config>, String> {
    let servers = body
        .get("mcpServers")
        .ok_or("mcpServers is missing: send {\"mcpServers\": {NAME: {\"command\": …} or {\"url\": …}}}")?
        .as_object()
        .ok_or("mcpServers must be an object of servers by name")?;
    if servers.len() > MAX_SERVERS {
        return Err(format!(
            "mcpServers has {} servers, the maximum is {MAX_SERVERS}",
            servers.len()
        ));
    }
    let one = |(name, value): (&String, &Value)| {
        check_name(name)?;
        let config = read_one(value).map_err(|problem| format!("mcpServers.{name}{problem}"))?;
        Ok((name.clone(), config))
    };
    servers.iter().map(one).collect()
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "mcpServers has an invalid name: use 1 to {MAX_NAME} of A-Z, a-z, 0-9, _ and -"
    ))
}

fn read_one(value: &Value) -> Result<Config, String> {
    let object = value.as_object().ok_or(" must be an object")?;
    match (object.get("command"), object.get("url")) {
        (Some(command), None) => program(command, object),
        (None, Some(url)) => address(url, object),
        (Some(_), Some(_)) => Err(" has both command and url: give one".into()),
        (None, None) => Err(" needs a command or a url".into()),
    }
}

fn program(command: &Value, object: &Map<String, Value>) -> Result<Config, String> {
    let command = text(command).filter(|command| !command.is_empty());
    let command = command.ok_or(".command must be a non-empty string without NUL")?;
    let args = match object.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => args
            .iter()
            .map(text)
            .collect::<Option<_>>()
            .ok_or(".args must be strings without NUL")?,
        Some(_) => return Err(".args must be a list of strings".into()),
    };
    let env = texts(object.get("env")).ok_or(".env must be an object of strings without NUL")?;
    if env.keys().any(|key| key.is_empty() || key.contains('=')) {
        return Err(".env has a name that is empty or contains =".into());
    }
    Ok(Config::Program { command, args, env })
}

fn address(url: &Value, object: &Map<String, Value>) -> Result<Config, String> {
    let url = text(url)
        .and_then(|url| Url::parse(&url).ok())
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or(".url must be an http:// or https:// URL")?;
    let values = texts(object.get("headers")).ok_or(".headers must be an object of strings")?;
    let mut headers = HashMap::new();
    for (name, value) in values {
        let name = HeaderName::try_from(name).map_err(|_| ".headers has an invalid name")?;
        if RESERVED.contains(&name.as_str()) {
            return Err(format!(
                ".headers.{name} is reserved by the protocol: leave it out"
            ));
        }
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!(".headers.{name} has an invalid value"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let is_sse = is_sse(&url, object)?;
    Ok(Config::Address {
        url,
        headers,
        is_sse,
    })
}

/// As in other clients: the type if given, otherwise the end of the URL's path.
fn is_sse(url: &Url, object: &Map<String, Value>) -> Result<bool, String> {
    let kind = object.get("type").or_else(|| object.get("transport"));
    match kind.map(|kind| kind.as_str().unwrap_or_default()) {
        None => Ok(url.path().trim_end_matches('/').ends_with("/sse")),
        Some("sse") => Ok(true),
        Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => Ok(false),
        Some(_) => Err(".type must be http (streamable HTTP) or sse (HTTP+SSE) for a url".into()),
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.contains('\0'))?;
    Some(text.to_owned())
}

fn texts(value: Option<&Value>) -> Option<BTreeMap<String, String>> {
    match value {
        None | Some(Value::Null) => Some(BTreeMap::new()),
        Some(value) => value
            .as_object()?
            .iter()
            .map(|(key, value)| Some((text(&Value::String(key.clone()))?, text(value)?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_name_the_field() {
        let many: Map<_, _> = (0..=MAX_SERVERS)
            .map(|number| (format!("s{number}"), json!({"command": "true"})))
            .collect();
        let cases = [
            (json!([]), "mcpServers is missing"),
            (json!({"mcpServers": 1}), "must be an object"),
            (json!({"mcpServers": many}), "the maximum is 20"),
            (
                json!({"mcpServers": {"a b": {"command": "x"}}}),
                "an invalid name",
            ),
            (
                json!({"mcpServers": {"": {"command": "x"}}}),
                "an invalid name",
            ),
            (
                json!({"mcpServers": {"a": {}}}),
                "mcpServers.a needs a command or a url",
            ),
            (
                json!({"mcpServers": {"a": {"command": "x", "url": "y"}}}),
                "both",
            ),
            (
                json!({"mcpServers": {"a": {"command": ""}}}),
                "mcpServers.a.command",
            ),
            (
                json!({"mcpServers": {"a": {"command": "x", "args": "y"}}}),
                "mcpServers.a.args",
            ),
            (
                json!({"mcpServers": {"a": {"command": "x", "args": ["\0"]}}}),
                "mcpServers.a.args",
            ),
            (
                json!({"mcpServers": {"a": {"command": "x", "env": {"A=B": "c"}}}}),
                "mcpServers.a.env",
            ),
            (
                json!({"mcpServers": {"a": {"url": "ftp://x/"}}}),
                "mcpServers.a.url",
            ),
            (
                json!({"mcpServers": {"a": {"url": "http://x/", "headers": {"Accept": "y"}}}}),
                "headers.accept",
            ),
            (
                json!({"mcpServers": {"a": {"url": "http://x/", "headers": {"a": "\n"}}}}),
                "headers.a",
            ),
            (
                json!({"mcpServers": {"a": {"url": "http://x/", "type": "stdio"}}}),
                "mcpServers.a.type",
            ),
        ];
        for (body, expected) in cases {
            let problem = read(&body).unwrap_err();
            assert!(problem.contains(expected), "{body}: {problem}");
        }
    }

    #[test]
    fn the_transport_comes_from_the_type_or_the_url() {
        for (server, expected) in [
            (json!({"url": "http://x/mcp"}), false),
            (json!({"url": "http://x/sse"}), true),
            (json!({"url": "http://x/a/sse/?key=1"}), true),
            (json!({"url": "http://x/nosse"}), false),
            (json!({"url": "http://x/sse", "type": "http"}), false),
            (json!({"url": "http://x/events", "type": "sse"}), true),
            (json!({"url": "http://x/events", "transport": "sse"}), true),
        ] {
            let configs = read(&json!({"mcpServers": {"a": server}})).unwrap();
            let Config::Address { is_sse, .. } = &configs["a"] else {
                panic!("{server} is not a URL server");
            };
            assert_eq!(*is_sse, expected, "{server}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let body = json!({"mcpServers": {
            "a": {"command": "x", "env": {"KEY": "secret-1"}},
            "b": {"url": "http://user:secret-2@x/", "headers": {"Authorization": "secret-3"}},
        }});
        let configs = read(&body).unwrap();
        assert_eq!(configs.len(), 2);
        assert!(!format!("{configs:?}").contains("secret"));
    }
}
