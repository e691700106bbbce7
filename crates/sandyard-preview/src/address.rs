//! Which sandbox and port a request wants.
//!
//! ```text
//! host form   {port}-{sandbox}.{domain}     3000-abc.localhost:8100
//!             {sandbox}-{port}.{domain}     abc-3000.localhost:8100
//! path form   /p/{sandbox}/{port}/rest      /p/abc/3000/index.html
//! ```
//!
//! A label that can be read both ways (`8080-3000`) is read with the port first. Ids are twenty characters without a
//! dash, so only an alias can be ambiguous.

use http::header::HOST;
use http::request::Parts;

/// Longest name: a DNS label has 63 bytes at most.
const MAX_SANDBOX_LEN: usize = 63;

/// A port of a sandbox, as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PreviewAddress {
    /// Id of the sandbox, lower-case; whether there is one is for others to say. Aliases do not count: see the service's
    /// `find_for_preview`.
    pub sandbox: String,
    /// The port, never 0.
    pub port: u16,
    /// How it was named.
    pub form: PreviewForm,
}

/// The two ways to name a preview.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreviewForm {
    /// By a host of its own.
    Host,
    /// By a path on the server's host.
    Path,
}

impl PreviewAddress {
    /// Gives the public path of the port's `/`, without the final slash. Empty in the host form.
    pub fn prefix(&self) -> String {
        match self.form {
            PreviewForm::Host => String::new(),
            PreviewForm::Path => format!("/p/{}/{}", self.sandbox, self.port),
        }
    }

    /// Reads the path form off a request's path.
    pub fn from_path(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("/p/")?.splitn(3, '/');
        let (sandbox, port) = (parts.next()?, parts.next()?);
        Some(Self {
            sandbox: sandbox_name(sandbox)?,
            port: port_number(port)?,
            form: PreviewForm::Path,
        })
    }

    /// Reads the host form off the first label of a host.
    fn from_label(label: &str) -> Option<Self> {
        let port_first = label.split_once('-').map(|(port, name)| (name, port));
        let name_first = label.rsplit_once('-');
        [port_first, name_first]
            .into_iter()
            .flatten()
            .find_map(|(name, port)| {
                Some(Self {
                    sandbox: sandbox_name(name)?,
                    port: port_number(port)?,
                    form: PreviewForm::Host,
                })
            })
    }
}

/// The domains whose hosts are previews.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains(Vec<String>);

impl Domains {
    /// Takes domains as they are configured: `example.com`, `*.example.com`, `.example.com`.
    pub fn new<I: AsRef<str>>(domains: impl IntoIterator<Item = I>) -> Self {
        let clean = |domain: I| {
            let domain = domain.as_ref().trim().trim_start_matches('*');
            let domain = domain.trim_matches('.').to_ascii_lowercase();
            (!domain.is_empty()).then_some(domain)
        };
        Self(domains.into_iter().filter_map(clean).collect())
    }

    /// Reads the host form off a host, with or without a port.
    pub fn parse(&self, host: &str) -> Option<PreviewAddress> {
        PreviewAddress::from_label(&self.label_of(host)?)
    }

    /// Says whether a host, with or without a port, is this label right below one of the domains.
    pub fn is_named(&self, host: &str, label: &str) -> bool {
        self.label_of(host).is_some_and(|found| found == label)
    }

    /// Gives what a host has before one of the domains, in lower case.
    fn label_of(&self, host: &str) -> Option<String> {
        let host = without_port(host)?.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let (label, domain) = host.split_once('.')?;
        let is_known = self.0.iter().any(|known| known == domain);
        is_known.then(|| label.to_owned())
    }

    /// Reads a request: its host first, then its path.
    pub fn address_of(&self, parts: &Parts) -> Option<PreviewAddress> {
        host_of(parts)
            .and_then(|host| self.parse(host))
            .or_else(|| PreviewAddress::from_path(parts.uri.path()))
    }
}

/// Gives the host a request is for: its URI's when it has one, as RFC 9112 3.2.2 wants, else its only `Host`.
///
/// `None` when there is none, two, or one that cannot be a host.
pub fn host_of(parts: &Parts) -> Option<&str> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let header = hosts.next();
    if hosts.next().is_some() {
        return None;
    }
    let host = match parts.uri.authority() {
        Some(authority) => authority.as_str(),
        None => header?.to_str().ok()?,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    // An empty label is none: of `a..` one would read `a.` and another `a`.
    let has_labels = !host.is_empty() && !host.starts_with('.') && !host.contains("..");
    (has_labels && host.bytes().all(is_plain)).then_some(host)
}

/// For `/p/abc/3000` gives `/p/abc/3000/`: without the slash relative links of the page would miss the port.
pub fn slash_redirect(uri: &http::Uri) -> Option<String> {
    let address = PreviewAddress::from_path(uri.path())?;
    let prefix = address.prefix();
    (uri.path() == prefix).then(|| match uri.query() {
        Some(query) => format!("{prefix}/?{query}"),
        None => format!("{prefix}/"),
    })
}

/// Takes the port off a host. IPv6 addresses are nobody's preview.
fn without_port(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        return None;
    }
    match host.split_once(':') {
        None => Some(host),
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(name),
        Some(_) => None,
    }
}

/// Reads a port in its one spelling: no sign, no leading zero, not 0.
fn port_number(text: &str) -> Option<u16> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Reads the name of a sandbox: what may stand in a DNS label, and underscores.
pub(crate) fn sandbox_name(text: &str) -> Option<String> {
    let is_plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
    };
    let fits = !text.is_empty() && text.len() <= MAX_SANDBOX_LEN;
    let dashed = text.starts_with('-') || text.ends_with('-');
    (fits && !dashed && text.bytes().all(is_plain)).then(|| text.to_owned())
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
