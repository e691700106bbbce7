//! The E2B dialect's own listener, and what its clients are to know about where they are.

use std::net::IpAddr;

use sandyard_config::Settings;
use sandyard_config::settings::E2bPort;

use crate::listen::{self, BindError, Bound};

/// What became of the dialect's own listener.
#[derive(Debug, Default)]
pub(super) struct E2bSockets {
    /// Its sockets; none if it is off or could not be had.
    pub(super) sockets: Vec<Bound>,
    /// Why it could not be had, in words.
    pub(super) warning: Option<String>,
}

/// Listens for the dialect. A port that nobody chose is done without if it cannot be had.
///
/// # Errors
///
/// When a port that somebody chose cannot be had.
pub(super) fn bind(settings: &Settings, is_tls: bool) -> Result<E2bSockets, BindError> {
    if settings.e2b.is_enabled && settings.e2b.port == E2bPort::None {
        return Ok(E2bSockets {
            sockets: Vec::new(),
            warning: Some(without("there is no port after that of the server")),
        });
    }
    match listen::bind(&settings.e2b.listeners(), is_tls, true) {
        Ok(sockets) => Ok(E2bSockets {
            sockets,
            warning: None,
        }),
        Err(error) if matches!(settings.e2b.port, E2bPort::Derived(_)) && error.is_about_port() => {
            Ok(E2bSockets {
                sockets: Vec::new(),
                warning: Some(without(&error.to_string())),
            })
        }
        Err(error) => Err(error),
    }
}

fn without(reason: &str) -> String {
    format!("E2B's API has no listener of its own, and is below `/e2b` only: {reason}")
}

/// What the dialect's clients put behind `{port}-{id}.` to reach a port: a domain, with a port where that is not the
/// scheme's usual one.
pub(crate) fn domain(settings: &Settings, sockets: &[Bound]) -> String {
    if let Some(domain) = &settings.e2b.domain {
        return domain.clone();
    }
    let name = settings.server.domain.as_str();
    let public = settings.server.public_url.as_deref();
    let (is_tls, port) = match public.and_then(scheme_and_port) {
        Some(reached) if has_names_below(name) => reached,
        _ => {
            // With TLS the domain is the main listener's; a client without one comes to the dialect's own.
            let is_own =
                |socket: &&Bound| socket.is_e2b != (socket.is_tls && has_names_below(name));
            let socket = sockets.iter().find(is_own).or(sockets.first());
            socket.map_or((false, 80), |socket| (socket.is_tls, socket.address.port()))
        }
    };
    match port == usual_port(is_tls) {
        true => name.to_owned(),
        false => format!("{name}:{port}"),
    }
}

/// Says whether a domain is all that the dialect's clients need: they reach `https://api.{domain}`.
pub(crate) fn is_domain_enough(settings: &Settings, sockets: &[Bound], domain: &str) -> bool {
    let name = domain.split(':').next().unwrap_or(domain);
    let public = settings.server.public_url.as_deref();
    let is_tls = match public.and_then(scheme_and_port) {
        Some((is_tls, _)) => is_tls,
        None => sockets.first().is_some_and(|socket| socket.is_tls),
    };
    is_tls && has_names_below(name)
}

/// Says whether a certificate can be good for all names below a domain. For those below `localhost` there is none.
fn has_names_below(domain: &str) -> bool {
    domain.contains('.') && domain.parse::<IpAddr>().is_err()
}

/// Whether a URL is of `https`, and its port.
fn scheme_and_port(url: &str) -> Option<(bool, u16)> {
    let url: axum::http::Uri = url.parse().ok()?;
    let is_tls = url.scheme_str()? == "https";
    Some((is_tls, url.port_u16().unwrap_or(usual_port(is_tls))))
}

/// The port that need not be said.
pub(crate) fn usual_port(is_tls: bool) -> u16 {
    match is_tls {
        true => 443,
        false => 80,
    }
}

#[cfg(test)]
mod tests {
    use sandyard_config::{Sources, load};

    use super::*;

    fn settings(flags: &[(&str, &str)]) -> Settings {
        let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
        let sources = Sources {
            flags: [("data_dir", "/nowhere")]
                .iter()
                .chain(flags)
                .map(own)
                .collect(),
            table: sandyard_providers::Registry::BUILTIN.table(),
            ..Sources::default()
        };
        load(&sources).unwrap().settings
    }

    /// The sockets of a server with these settings, and the ports they really have: the server's, the dialect's.
    fn bound(settings: &Settings) -> (Vec<Bound>, u16, u16) {
        let is_tls = settings.server.tls != sandyard_config::settings::Tls::Off;
        let mut sockets = listen::bind(&settings.server.listeners(), is_tls, false).unwrap();
        let own = bind(settings, is_tls).unwrap();
        let port = sockets[0].address.port();
        let own_port = own.sockets.first().map_or(0, |own| own.address.port());
        sockets.extend(own.sockets);
        (sockets, port, own_port)
    }

    #[tokio::test]
    async fn in_the_clear_names_lead_to_the_dialects_own_listener() {
        let settings = settings(&[("server.port", "0")]);
        let (sockets, _, own) = bound(&settings);
        let domain = domain(&settings, &sockets);
        assert_eq!(domain, format!("localhost:{own}"));
        assert!(!is_domain_enough(&settings, &sockets, &domain));
    }

    #[tokio::test]
    async fn without_that_listener_they_lead_to_the_servers() {
        let settings = settings(&[("server.port", "0"), ("e2b.enabled", "false")]);
        let (sockets, port, _) = bound(&settings);
        assert_eq!(domain(&settings, &sockets), format!("localhost:{port}"));
    }

    #[tokio::test]
    async fn with_tls_a_domain_is_the_main_listeners_and_enough() {
        let tls = [("server.port", "0"), ("server.tls_self_signed", "true")];
        let named = settings(&[&tls[..], &[("server.domain", "sbx.test")]].concat());
        let (sockets, port, _) = bound(&named);
        let domain_of = |settings: &Settings, sockets: &[Bound]| domain(settings, sockets);
        let domain = domain_of(&named, &sockets);
        assert_eq!(domain, format!("sbx.test:{port}"));
        assert!(is_domain_enough(&named, &sockets, &domain));
        let local = settings(&tls);
        let (sockets, _, own) = bound(&local);
        let domain = domain_of(&local, &sockets);
        assert_eq!(domain, format!("localhost:{own}"));
        assert!(!is_domain_enough(&local, &sockets, &domain));
    }

    #[tokio::test]
    async fn a_proxy_in_front_has_the_last_word() {
        let flags = [
            ("server.port", "0"),
            ("server.domain", "sbx.test"),
            ("server.public_url", "https://sbx.test"),
        ];
        let proxied = settings(&flags);
        let (sockets, ..) = bound(&proxied);
        assert_eq!(domain(&proxied, &sockets), "sbx.test");
        assert!(is_domain_enough(&proxied, &sockets, "sbx.test"));
        let explicit = settings(&[&flags[..], &[("e2b.domain", "sbx.test:8443")]].concat());
        assert_eq!(domain(&explicit, &sockets), "sbx.test:8443");
    }

    #[tokio::test]
    async fn a_port_that_is_taken_matters_only_if_somebody_chose_it() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let chosen = settings(&[("e2b.port", &port.to_string())]);
        let error = bind(&chosen, false).unwrap_err();
        assert!(error.to_string().contains("--e2b-port"), "{error}");
        let mut derived = chosen;
        derived.e2b.port = E2bPort::Derived(port);
        let outcome = bind(&derived, false).unwrap();
        let warning = outcome.warning.unwrap();
        assert!(outcome.sockets.is_empty());
        assert!(
            warning.contains("`/e2b`") && warning.contains("--e2b-port"),
            "{warning}"
        );
    }
}
