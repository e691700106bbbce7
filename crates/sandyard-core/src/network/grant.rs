//! What the gateway is given for one sandbox.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use super::pattern::{HostPattern, ascii_hint};
use super::policy::NetworkPolicy;
use super::target::parse_port;
use crate::id::SandboxId;

/// The rights of one sandbox on the network: input of the gateway, or of the provider that enforces them itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkGrant {
    /// The sandbox.
    pub sandbox_id: SandboxId,
    /// The owner of the sandbox.
    pub owner: String,
    /// What it may reach. Header values of its rules are in clear here.
    pub policy: NetworkPolicy,
    /// Secrets it may use without seeing them.
    pub secrets: Vec<SecretGrant>,
    /// Whether this server is to be the one that carries its traffic from now on; else only if no other does.
    pub is_leading: bool,
}

impl NetworkGrant {
    /// The secrets that may go to this name and port, with or without TLS.
    pub fn secrets_for<'a>(
        &'a self,
        name: &'a str,
        port: u16,
        is_tls: bool,
    ) -> impl Iterator<Item = &'a SecretGrant> {
        self.secrets.iter().filter(move |secret| {
            let mut hosts = secret.hosts.iter();
            hosts.any(|host| host.matches(name, port, is_tls))
        })
    }
}

/// A secret that a sandbox may use without seeing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    /// Its name.
    pub name: String,
    /// What the sandbox has in its place.
    pub placeholder: String,
    /// What goes out in the place of that.
    pub value: SecretText,
    /// Where it may go, and nowhere else.
    pub hosts: Vec<BoundHost>,
}

/// A text that must not be shown: [`fmt::Debug`] hides it, and its bytes are cleared when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Takes a text in.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Where a secret, or what a rule sets, may go.
///
/// Written `api.example.com`, `*.example.com`, `api.example.com:8443`; over TLS alone, unless written
/// `http://registry.internal`. Never every host: a value goes where its owner said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BoundHost {
    /// Which names.
    pub pattern: HostPattern,
    /// Which port; every one when none is given.
    pub port: Option<u16>,
    /// Whether a value may go there without TLS.
    pub is_plain: bool,
}

/// Says why a text names no place for a secret or for what a rule sets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundHostError {
    /// It names every host.
    #[error(
        "`{0}` stands for every host, and secrets and the headers of rules go to named ones alone: write `api.example.com` \
         or `*.example.com`"
    )]
    EveryHost(String),
    /// It names none.
    #[error(
        "`{0}` is not a valid host of a secret or a rule: write `api.example.com` or `*.example.com`, with or without \
         `:port`, and `http://` before it to send values without TLS as well{hint}",
        hint = ascii_hint(.0)
    )]
    NoHost(String),
}

impl BoundHost {
    /// Says whether a value may go to this name and port, with or without TLS.
    pub fn matches(&self, name: &str, port: u16, is_tls: bool) -> bool {
        self.pattern.matches(name)
            && self.port.is_none_or(|own| own == port)
            && (is_tls || self.is_plain)
    }

    /// Grows with how closely it fits: of two that fit the same connection, the narrower one has the greater.
    pub(super) fn closeness(&self) -> impl Ord + use<> {
        let pattern = &self.pattern;
        (
            // What fits and is longer fits closer.
            pattern.as_str().len(),
            !pattern.is_wildcard(),
            self.port.is_some(),
            !self.is_plain,
        )
    }
}

impl FromStr for BoundHost {
    type Err = BoundHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let host = parse(text).ok_or_else(|| BoundHostError::NoHost(text.to_owned()))?;
        if host.pattern.is_every_name() {
            return Err(BoundHostError::EveryHost(text.to_owned()));
        }
        Ok(host)
    }
}

impl TryFrom<String> for BoundHost {
    type Error = BoundHostError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<BoundHost> for String {
    fn from(host: BoundHost) -> Self {
        host.to_string()
    }
}

impl fmt::Display for BoundHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_plain {
            f.write_str("http://")?;
        }
        write!(f, "{}", self.pattern)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

fn parse(text: &str) -> Option<BoundHost> {
    let (is_plain, rest) = match text.strip_prefix("http://") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("https://").unwrap_or(text)),
    };
    let (host, port) = match rest.split_once(':') {
        Some((host, port)) => (host, Some(parse_port(port)?)),
        None => (rest, None),
    };
    Some(BoundHost {
        pattern: host.parse().ok()?,
        port,
        is_plain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> BoundHost {
        text.parse().expect(text)
    }

    #[test]
    fn every_form_is_written_as_it_is_read() {
        for text in [
            "api.example.com",
            "*.example.com",
            "api.example.com:8443",
            "http://registry.internal",
            "http://*.internal:5000",
        ] {
            assert_eq!(host(text).to_string(), text);
        }
        assert_eq!(
            host("https://API.example.com:443").to_string(),
            "api.example.com:443"
        );
        let json = serde_json::to_string(&host("http://a.org:1")).expect("written");
        assert_eq!(json, "\"http://a.org:1\"");
        assert_eq!(
            serde_json::from_str::<BoundHost>(&json).expect("read"),
            host("http://a.org:1")
        );
    }

    #[test]
    fn a_secret_is_bound_to_named_hosts() {
        for text in [
            "",
            "10.0.0.1",
            "[::1]:80",
            "a.org:0",
            "a.org:",
            "a.org/path",
            "ftp://a.org",
            "HTTP://a.org",
            "http://https://a.org",
            "user@a.org",
            "a.*.org",
        ] {
            assert_eq!(
                text.parse::<BoundHost>(),
                Err(BoundHostError::NoHost(text.to_owned()))
            );
        }
        for text in ["*", "*:443", "https://*", "http://*", "http://*:80"] {
            let error = text.parse::<BoundHost>().expect_err(text);
            assert_eq!(error, BoundHostError::EveryHost(text.to_owned()));
            assert!(error.to_string().contains("every host"), "{error}");
        }
        let error = "bücher.example"
            .parse::<BoundHost>()
            .expect_err("not ASCII");
        assert!(error.to_string().contains("punycode"), "{error}");
    }

    #[test]
    fn it_goes_over_tls_alone_unless_said_otherwise() {
        assert!(host("a.org").matches("a.org", 443, true));
        assert!(!host("a.org").matches("a.org", 443, false));
        assert!(!host("https://a.org").matches("a.org", 80, false));
        assert!(host("http://a.org").matches("a.org", 80, false));
        assert!(host("http://a.org").matches("a.org", 443, true));
    }

    #[test]
    fn it_goes_to_its_names_and_port_alone() {
        assert!(host("a.org").matches("a.org", 9, true));
        assert!(host("a.org:9").matches("a.org", 9, true));
        assert!(!host("a.org:9").matches("a.org", 8, true));
        assert!(!host("a.org").matches("b.a.org", 9, true));
        assert!(host("*.a.org").matches("b.a.org", 9, true));
        assert!(!host("*.a.org").matches("a.org", 9, true));
        assert!(!host("*.a.org").matches("203.0.113.7", 9, true));
    }

    #[test]
    fn a_grant_finds_the_secrets_of_a_host() {
        let secret = |name: &str, hosts: &[&str]| SecretGrant {
            name: name.to_owned(),
            placeholder: format!("placeholder-{name}"),
            value: SecretText::new("hush"),
            hosts: hosts.iter().map(|text| host(text)).collect(),
        };
        let grant = NetworkGrant {
            sandbox_id: SandboxId::from_random([1; 20]),
            owner: "someone".to_owned(),
            policy: NetworkPolicy::default(),
            secrets: vec![
                secret("one", &["a.org", "http://b.org"]),
                secret("two", &["*.org:8443", "*.a.org"]),
                secret("none", &[]),
            ],
            is_leading: true,
        };
        let found = |name: &str, port, is_tls| -> Vec<String> {
            grant
                .secrets_for(name, port, is_tls)
                .map(|secret| secret.name.clone())
                .collect()
        };
        assert_eq!(found("a.org", 443, true), ["one"]);
        assert_eq!(found("a.org", 8443, true), ["one", "two"]);
        assert_eq!(found("b.org", 80, false), ["one"]);
        assert_eq!(found("a.org", 80, false), [""; 0]);
        assert_eq!(found("c.com", 443, true), [""; 0]);
        assert!(!format!("{grant:?}").contains("hush"));
    }
}
