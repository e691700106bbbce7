//! The choice of a proxy, from settings or the environment.

use super::no_proxy::NoProxy;
use super::proxy::Proxy;
use crate::settings::GatewayError;

/// The proxies in use.
#[derive(Debug)]
pub(super) struct Routes {
    /// For HTTP without TLS.
    plain: Option<Proxy>,
    /// For everything else.
    rest: Option<Proxy>,
    no_proxy: NoProxy,
}

impl Routes {
    /// One proxy for everything, without exceptions: an operator who sets one wants no bypass.
    pub(super) fn all_by(url: &str) -> Result<Self, GatewayError> {
        let proxy = Proxy::parse(url)?;
        Ok(Self {
            plain: Some(proxy.clone()),
            rest: Some(proxy),
            no_proxy: NoProxy::default(),
        })
    }

    /// From `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower or upper case; lower case wins.
    pub(super) fn of_environment(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, GatewayError> {
        let read = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
        let either = |name: &str| {
            read(&name.to_ascii_lowercase()).or_else(|| {
                // In a CGI program this is the request's `Proxy` header.
                let is_forged = name == "HTTP_PROXY" && environment("REQUEST_METHOD").is_some();
                (!is_forged).then(|| read(name)).flatten()
            })
        };
        let proxy_of = |name: &str| {
            let url = either(name).or_else(|| either("ALL_PROXY"));
            url.map(|url| Proxy::parse(&url)).transpose()
        };
        Ok(Self {
            plain: proxy_of("HTTP_PROXY")?,
            rest: proxy_of("HTTPS_PROXY")?,
            no_proxy: NoProxy::parse(&either("NO_PROXY").unwrap_or_default()),
        })
    }

    /// The proxy for a host, which is a name or an address; `None`: it is dialled directly.
    pub(super) fn proxy_for(&self, host: &str, port: u16, is_plain_http: bool) -> Option<&Proxy> {
        let proxy = if is_plain_http {
            self.plain.as_ref()
        } else {
            self.rest.as_ref()
        };
        proxy.filter(|_| !self.no_proxy.matches(host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(variables: &[(&str, &str)]) -> Routes {
        Routes::of_environment(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
        .unwrap()
    }

    fn route_to(routes: &Routes, is_plain_http: bool) -> String {
        let proxy = routes.proxy_for("example.com", 8080, is_plain_http);
        proxy.map_or_else(|| "direct".into(), ToString::to_string)
    }

    #[test]
    fn each_variable_is_for_its_own_and_the_last_for_the_rest() {
        let both = [("HTTPS_PROXY", "http://s:1"), ("http_proxy", "http://p:2")];
        for (variables, plain, rest) in [
            (&both[..], "proxy http://p:2", "proxy http://s:1"),
            (&both[..1], "direct", "proxy http://s:1"),
            (
                &[("ALL_PROXY", "socks5h://a:3")],
                "proxy socks5h://a:3",
                "proxy socks5h://a:3",
            ),
            (
                &[("ALL_PROXY", "a:3"), both[0]],
                "proxy http://a:3",
                "proxy http://s:1",
            ),
            (
                &[("https_proxy", "low:1"), ("HTTPS_PROXY", "up:2")],
                "direct",
                "proxy http://low:1",
            ),
            (
                &[("https_proxy", ""), ("HTTPS_PROXY", "up:2")],
                "direct",
                "proxy http://up:2",
            ),
            (&[("HTTP_PROXY", "up:2")], "proxy http://up:2", "direct"),
            (
                &[("HTTP_PROXY", "up:2"), ("REQUEST_METHOD", "GET")],
                "direct",
                "direct",
            ),
            (
                &[("http_proxy", "low:1"), ("REQUEST_METHOD", "GET")],
                "proxy http://low:1",
                "direct",
            ),
            (&[], "direct", "direct"),
        ] {
            let routes = routes(variables);
            assert_eq!(route_to(&routes, true), plain, "{variables:?}");
            assert_eq!(route_to(&routes, false), rest, "{variables:?}");
        }
    }

    #[test]
    fn exceptions_of_the_environment_do_not_hold_for_a_proxy_that_was_given() {
        let of_environment = routes(&[("ALL_PROXY", "a:3"), ("no_proxy", "example.com")]);
        assert_eq!(route_to(&of_environment, false), "direct");
        let given = Routes::all_by("a:3").unwrap();
        assert_eq!(route_to(&given, false), "proxy http://a:3");
    }

    #[test]
    fn a_variable_that_names_no_proxy_is_an_error() {
        let bad = |name: &str| (name == "ALL_PROXY").then(|| "https://u:hunter2@p:1".to_owned());
        let err = Routes::of_environment(bad).unwrap_err().to_string();
        assert!(!err.contains("hunter2"), "{err}");
    }
}
