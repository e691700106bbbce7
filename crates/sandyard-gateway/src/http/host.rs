//! The host that a connection was judged for, and the check that a request is for it.

use std::net::IpAddr;

use http::header::HOST;
use http::request::Parts;
use http::{StatusCode, Version};
use sandyard_core::network::pattern::canonical_name;

use super::answer::Refusal;
use super::exchange::NameJudge;

/// Maximum length of a wrong name in records, in bytes.
const MAX_SHOWN_BYTES: usize = 300;

/// The host that a connection was judged for.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// Its name; an address in text where there is no name.
    pub(crate) name: String,
    /// The port.
    pub(crate) port: u16,
}

impl Host {
    /// Its authority in a URL, with the port unless it is the default.
    pub(super) fn authority(&self, is_tls: bool) -> String {
        let name = match self.name.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => self.name.clone(),
        };
        match (is_tls, self.port) {
            (true, 443) | (false, 80) => name,
            (_, port) => format!("{name}:{port}"),
        }
    }

    /// Whether a `Host` header or a URL names this host, with or without the port.
    fn is_named(&self, authority: &str) -> bool {
        let Some((name, port)) = split(authority) else {
            return false;
        };
        let is_port = match port {
            None | Some("") => true,
            // Only digits: `parse` would accept `+443`.
            Some(port) => {
                port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse() == Ok(self.port)
            }
        };
        is_port && is_same(name, &self.name)
    }

    /// Checks that a request is for the host, or for a name that `other_names` allows.
    pub(super) fn check(
        &self,
        request: &Parts,
        other_names: Option<&NameJudge>,
    ) -> Result<(), Refusal> {
        let mut named = request.headers.get_all(HOST).iter();
        let (header, more) = (named.next(), named.next());
        if more.is_some() {
            let text = "the request has more than one `Host` header".to_owned();
            return Err(Refusal::answer(StatusCode::BAD_REQUEST, text));
        }
        let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let authority = request.uri.authority();
        if header.is_none() && authority.is_none() && request.version != Version::HTTP_10 {
            let text = "the request has no `Host` header".to_owned();
            return Err(Refusal::answer(StatusCode::BAD_REQUEST, text));
        }
        let authority = authority.map(|authority| authority.as_str());
        for requested in [header.as_deref(), authority].into_iter().flatten() {
            if self.is_named(requested) {
                continue;
            }
            let other_host = || Refusal::OtherHost(printable(requested));
            let judge = other_names.ok_or_else(other_host)?;
            let (name, _) = split(requested).ok_or_else(other_host)?;
            if name.parse::<IpAddr>().is_err() {
                let name = canonical_name(name).ok_or_else(other_host)?;
                judge(&name).map_err(Refusal::Denied)?;
            }
        }
        Ok(())
    }
}

fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    let (name, rest) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            (address, (!rest.is_empty()).then_some(rest))
        }
        None => match authority.find(':') {
            Some(colon) => (&authority[..colon], Some(&authority[colon..])),
            None => (authority, None),
        },
    };
    match rest {
        None => Some((name, None)),
        Some(rest) => Some((name, Some(rest.strip_prefix(':')?))),
    }
}

fn is_same(requested: &str, name: &str) -> bool {
    if let (Ok(requested), Ok(name)) = (requested.parse::<IpAddr>(), name.parse::<IpAddr>()) {
        return requested.to_canonical() == name.to_canonical();
    }
    let without_dot = |name| str::strip_suffix(name, ".").unwrap_or(name);
    !name.is_empty() && without_dot(requested).eq_ignore_ascii_case(without_dot(name))
}

/// The name for people: short, and without control characters.
fn printable(name: &str) -> String {
    let letters = name.chars().filter(|letter| !letter.is_control());
    let mut text = String::new();
    for letter in letters {
        if text.len() + letter.len_utf8() > MAX_SHOWN_BYTES {
            break;
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: u16) -> Host {
        let name = name.to_owned();
        Host { name, port }
    }

    #[test]
    fn a_host_is_known_by_its_name_in_every_spelling() {
        let host = host("api.example.com", 8443);
        for name in [
            "api.example.com",
            "API.Example.COM",
            "api.example.com.",
            "api.example.com:8443",
            "api.example.com:",
        ] {
            assert!(host.is_named(name), "{name}");
        }
        for name in [
            "",
            "example.com",
            "xapi.example.com",
            "api.example.com:443",
            "api.example.com:+8443",
            "api.example.com:8443:8443",
            "api.example.com..",
            "user@api.example.com",
            "api.example.com@evil.example",
            "api.example.com/",
            " api.example.com",
            "[api.example.com]x",
        ] {
            assert!(!host.is_named(name), "{name}");
        }
    }

    #[test]
    fn addresses_are_compared_as_addresses() {
        assert!(host("2001:db8::1", 443).is_named("[2001:DB8:0::1]:443"));
        assert!(host("2001:db8::1", 443).is_named("[2001:db8::1]"));
        assert!(!host("2001:db8::1", 443).is_named("2001:db8::1"));
        assert!(!host("2001:db8::1", 443).is_named("[2001:db8::2]"));
        assert!(host("192.0.2.7", 80).is_named("192.0.2.7:80"));
        assert!(!host("192.0.2.7", 80).is_named("example.com"));
    }

    #[test]
    fn the_usual_port_is_left_out_of_urls() {
        assert_eq!(host("a.example", 443).authority(true), "a.example");
        assert_eq!(host("a.example", 443).authority(false), "a.example:443");
        assert_eq!(host("2001:db8::1", 80).authority(false), "[2001:db8::1]");
    }

    #[test]
    fn a_wrong_name_is_shown_short_and_without_control_letters() {
        let long = format!("\u{1b}[31m{}", "ä".repeat(1000));
        let text = printable(&long);
        assert!(
            text.len() <= MAX_SHOWN_BYTES && text.starts_with("[31mä"),
            "{text}"
        );
    }
}
