//! The public URL of a port.

use crate::address::{Domains, PreviewAddress, PreviewForm};
use crate::target::Scheme;

/// How a URL names the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlForm {
    /// `{port}-{sandbox}.{domain}`
    PortFirst,
    /// `{sandbox}-{port}.{domain}`; with the port first where that would be read otherwise.
    SandboxFirst,
    /// `{base}/p/{sandbox}/{port}/`
    Path,
}

/// Makes the URL of a port. `base` is the domain, or in the path form the server's host; both may have a port.
///
/// Ends with a slash in the path form, where it matters, and without in the host forms.
pub fn url_for(form: UrlForm, scheme: Scheme, base: &str, sandbox: &str, port: u16) -> String {
    let scheme = scheme.as_str();
    let label = match form {
        UrlForm::Path => return format!("{scheme}://{base}/p/{sandbox}/{port}/"),
        UrlForm::SandboxFirst => sandbox_first(sandbox, port),
        UrlForm::PortFirst => None,
    };
    let label = label.unwrap_or_else(|| format!("{port}-{sandbox}"));
    format!("{scheme}://{label}.{base}")
}

/// Gives the label with the sandbox first when it reads back as what it was made of.
fn sandbox_first(sandbox: &str, port: u16) -> Option<String> {
    let label = format!("{sandbox}-{port}");
    let expected = PreviewAddress {
        sandbox: sandbox.to_owned(),
        port,
        form: PreviewForm::Host,
    };
    let read = Domains::new(["d"]).parse(&format!("{label}.d"));
    (read == Some(expected)).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_every_form_read_back() {
        let domains = Domains::new(["localhost"]);
        for sandbox in [
            "abc", "3000", "3000-web", "my-app", "web-8080", "99999", "a_b",
        ] {
            for form in [UrlForm::PortFirst, UrlForm::SandboxFirst, UrlForm::Path] {
                let url = url_for(form, Scheme::Http, "localhost:8100", sandbox, 8080);
                let uri: http::Uri = url.parse().unwrap();
                let address = domains
                    .parse(uri.authority().unwrap().as_str())
                    .or_else(|| PreviewAddress::from_path(uri.path()))
                    .unwrap();
                assert_eq!(
                    (address.sandbox.as_str(), address.port),
                    (sandbox, 8080),
                    "{url}"
                );
            }
        }
    }

    #[test]
    fn urls_look_as_documented() {
        let url = |form| url_for(form, Scheme::Https, "example.com", "abc", 3000);
        assert_eq!(url(UrlForm::PortFirst), "https://3000-abc.example.com");
        assert_eq!(url(UrlForm::SandboxFirst), "https://abc-3000.example.com");
        assert_eq!(url(UrlForm::Path), "https://example.com/p/abc/3000/");
    }
}
