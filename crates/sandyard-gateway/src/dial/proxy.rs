//! A proxy's URL.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sandyard_core::network::SecretText;
use sandyard_core::network::pattern::canonical_name;
use sandyard_core::percent::decode_strict;

use crate::settings::GatewayError;

/// Maximum length of a user name and of a password in SOCKS, in bytes.
const MAX_CREDENTIAL_BYTES: usize = 255;

/// One proxy. [`fmt::Display`] and [`fmt::Debug`] leave credentials out.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    /// Its protocol.
    pub(super) kind: ProxyKind,
    /// Its host.
    pub(super) host: ProxyHost,
    /// Its port.
    pub(super) port: u16,
    /// The credentials for it.
    pub(super) credentials: Option<Credentials>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyKind {
    /// `CONNECT`, and whole URLs for plain HTTP.
    Http,
    /// SOCKS 5.
    Socks {
        /// `socks5h`: the proxy gets names; otherwise addresses.
        resolves_names: bool,
    },
}

/// The host of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProxyHost {
    /// By address.
    Address(IpAddr),
    /// By name.
    Name(String),
}

/// A user name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    /// The user name.
    pub(super) user: String,
    /// The password.
    pub(super) password: SecretText,
}

impl Proxy {
    /// Parses `http://`, `socks5://` and `socks5h://` URLs; `host:port` alone is HTTP.
    pub(super) fn parse(url: &str) -> Result<Self, GatewayError> {
        Self::read(url.trim()).map_err(|problem| GatewayError::Proxy {
            url: without_credentials(url.trim()),
            problem: problem.into(),
        })
    }

    fn read(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let (kind, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (ProxyKind::Http, 80),
            "socks5" | "socks" => (
                ProxyKind::Socks {
                    resolves_names: false,
                },
                1080,
            ),
            "socks5h" => (
                ProxyKind::Socks {
                    resolves_names: true,
                },
                1080,
            ),
            "https" => {
                return Err(
                    "a connection over TLS to a proxy is not supported: use `http://`, `socks5://` or \
                            `socks5h://`",
                );
            }
            _ => return Err("its scheme must be `http://`, `socks5://` or `socks5h://`"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, authority) = match authority.rsplit_once('@') {
            Some((credentials, rest)) => (Some(Credentials::read(credentials)?), rest),
            None => (None, authority),
        };
        let (host, port) =
            split_port(authority).ok_or("its port must be a number from 1 to 65535")?;
        let port = port.unwrap_or(default_port);
        let host = match host.parse() {
            Ok(address) => ProxyHost::Address(address),
            Err(_) => ProxyHost::Name(canonical_name(host).ok_or("it has no valid host")?),
        };
        Ok(Self {
            kind,
            host,
            port,
            credentials,
        })
    }

    /// Whether the proxy gets names, which it resolves itself.
    pub(super) fn resolves_names(&self) -> bool {
        !matches!(
            self.kind,
            ProxyKind::Socks {
                resolves_names: false
            }
        )
    }

    /// The value of `Proxy-Authorization`, if there are credentials.
    pub(super) fn authorization(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        let pair = format!("{}:{}", credentials.user, credentials.password.expose());
        Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
    }
}

impl Credentials {
    fn read(text: &str) -> Result<Self, &'static str> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let (user, password) = (decode_strict(user), decode_strict(password));
        let (Some(user), Some(password)) = (user, password) else {
            return Err(
                "its user name or password has a `%` that is not followed by two hexadecimal digits",
            );
        };
        if user.len() > MAX_CREDENTIAL_BYTES || password.len() > MAX_CREDENTIAL_BYTES {
            return Err("its user name or password is longer than 255 bytes");
        }
        Ok(Self {
            user,
            password: SecretText::new(password),
        })
    }
}

/// Splits `host`, `host:port`, `[v6]`, `[v6]:port`; `None` for an invalid port.
pub(super) fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (
                host,
                after.strip_prefix(':').or(after.is_empty().then_some(""))?,
            )
        }
        // More than one colon is an IPv6 address without brackets.
        None => match authority.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, port),
            _ => (authority, ""),
        },
    };
    if port.is_empty() {
        return Some((host, None));
    }
    match port.parse() {
        Ok(port) if port != 0 => Some((host, Some(port))),
        _ => None,
    }
}

/// A possibly invalid URL for messages, without anything that could be credentials.
fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        (_, None) => url.to_owned(),
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            ProxyKind::Http => "http",
            ProxyKind::Socks {
                resolves_names: false,
            } => "socks5",
            ProxyKind::Socks {
                resolves_names: true,
            } => "socks5h",
        };
        match &self.host {
            ProxyHost::Address(IpAddr::V6(address)) => {
                write!(f, "proxy {scheme}://[{address}]:{}", self.port)
            }
            ProxyHost::Address(address) => write!(f, "proxy {scheme}://{address}:{}", self.port),
            ProxyHost::Name(name) => write!(f, "proxy {scheme}://{name}:{}", self.port),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_in_all_their_spellings() {
        for (url, shown) in [
            (
                "http://Proxy.corp.example:3128/",
                "proxy http://proxy.corp.example:3128",
            ),
            ("proxy:8080", "proxy http://proxy:8080"),
            ("HTTP://192.0.2.1", "proxy http://192.0.2.1:80"),
            (
                "socks5://[2001:db8::1]:9050",
                "proxy socks5://[2001:db8::1]:9050",
            ),
            ("socks5h://localhost", "proxy socks5h://localhost:1080"),
            ("socks://127.0.0.1:1", "proxy socks5://127.0.0.1:1"),
            (" http://u:p@h:1 ", "proxy http://h:1"),
        ] {
            assert_eq!(Proxy::parse(url).unwrap().to_string(), shown, "{url}");
        }
    }

    #[test]
    fn credentials_are_decoded_and_never_shown() {
        let proxy = Proxy::parse("http://us%40er:p%3Ass:w%2Frd@proxy:1").unwrap();
        let credentials = proxy.credentials.as_ref().unwrap();
        assert_eq!(credentials.user, "us@er");
        assert_eq!(credentials.password.expose(), "p:ss:w/rd");
        // printf 'us@er:p:ss:w/rd' | base64
        assert_eq!(proxy.authorization().unwrap(), "Basic dXNAZXI6cDpzczp3L3Jk");
        for text in [
            format!("{proxy}"),
            format!("{proxy:?}"),
            format!("{credentials:?}"),
        ] {
            assert!(!text.contains("w/rd") && !text.contains("us@er"), "{text}");
        }
        let alone = Proxy::parse("http://token@proxy:1").unwrap();
        assert_eq!(
            alone.authorization().unwrap(),
            format!("Basic {}", BASE64_STANDARD.encode("token:"))
        );
        assert_eq!(
            Proxy::parse("http://proxy:1").unwrap().authorization(),
            None
        );
    }

    #[test]
    fn an_invalid_proxy_is_refused_without_its_password() {
        let long = format!("http://u:hunter2{}@h", "x".repeat(255));
        for (url, part) in [
            ("https://u:hunter2@proxy:1", "over TLS"),
            ("ftp://u:hunter2@proxy", "must be `http://`"),
            ("http://u:hunter2@proxy:0", "port"),
            ("http://u:hunter2@proxy:http", "port"),
            ("http://u:hunter2@[::1", "port"),
            ("http://u:hunter2%4@proxy", "`%`"),
            ("u:hunter2@", "no valid host"),
            ("http://u:hunter2@pro xy", "no valid host"),
            ("http://", "no valid host"),
            ("http://u:hunter2@proxy/path", "no valid host"),
            (&long, "255"),
        ] {
            let err = Proxy::parse(url).unwrap_err().to_string();
            assert!(err.contains(part), "{url}: {err}");
            assert!(!err.contains("hunter2"), "{err}");
        }
    }
}
