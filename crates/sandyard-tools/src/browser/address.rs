//! Which URLs may be opened.

use std::net::IpAddr;

use reqwest::Url;

use crate::reply::{Problem, Result};
use crate::workspace::Workspace;

/// Maximum length of a URL.
const MAX_LENGTH: usize = 64 * 1024;

/// Parses a URL. Without a scheme it is `http` for localhost and IP addresses, otherwise `https`.
pub(crate) fn parse(text: &str, workspace: &Workspace) -> Result<Url> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_LENGTH {
        return Err(Problem::new(format!(
            "the URL is empty or longer than {MAX_LENGTH} bytes"
        )));
    }
    let full = if has_scheme(text) {
        text.to_owned()
    } else if text.starts_with('/') {
        format!("file://{text}")
    } else if is_local_or_ip(text) {
        format!("http://{text}")
    } else {
        format!("https://{text}")
    };
    let url = Url::parse(&full).map_err(|error| {
        Problem::new(format!(
            "{} is not a valid URL: {error}",
            super::notes::short(text, 200)
        ))
    })?;
    check(&url, workspace)?;
    Ok(url)
}

/// Checks that a URL may be opened.
pub(super) fn check(url: &Url, workspace: &Workspace) -> Result<()> {
    match url.scheme() {
        "http" | "https" | "data" | "blob" | "about" => Ok(()),
        "file" => {
            let path = url
                .to_file_path()
                .map_err(|()| Problem::new("a file URL must be file:///path"))?;
            workspace.resolve(&path.to_string_lossy()).map(drop)
        }
        other => Err(Problem::new(format!(
            "{other}: URLs cannot be opened; use an http, https or data: URL, or a file:// URL in the workspace"
        ))),
    }
}

/// Returns whether a text has a scheme. `host:port` has a colon too, followed by a number.
fn has_scheme(text: &str) -> bool {
    let Some((before, after)) = text.split_once(':') else {
        return false;
    };
    let is_word = before.starts_with(|char: char| char.is_ascii_alphabetic())
        && before
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-'));
    is_word && !after.starts_with(|char: char| char.is_ascii_digit())
}

/// Returns whether a text without a scheme starts with localhost or an IP address.
fn is_local_or_ip(text: &str) -> bool {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn urls_are_completed_and_forbidden_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let workspace = Workspace::new(&Options {
            workspace: root.clone(),
            more_roots: Vec::new(),
            home: root.clone(),
            token: None,
            port: 6060,
        });
        let inside = format!("file://{}/page.html", root.display());
        for (text, url) in [
            ("localhost:3000", "http://localhost:3000/"),
            ("LOCALHOST", "http://localhost/"),
            ("app.localhost:80/x?y", "http://app.localhost/x?y"),
            ("127.0.0.1:8080/a", "http://127.0.0.1:8080/a"),
            ("[::1]:8080", "http://[::1]:8080/"),
            (" example.org ", "https://example.org/"),
            ("example.org:8443/x", "https://example.org:8443/x"),
            ("http://example.org", "http://example.org/"),
            ("about:blank", "about:blank"),
            ("data:text/html,<p>hi", "data:text/html,<p>hi"),
            (&inside, &inside),
            (inside.strip_prefix("file://").unwrap(), &inside),
        ] {
            assert_eq!(parse(text, &workspace).unwrap().as_str(), url, "{text}");
        }
        let link = format!("file://{}/link/passwd", root.display());
        let up = format!("file://{}/../x", root.display());
        for bad in [
            "",
            "chrome://settings",
            "CHROME://crash",
            "devtools://devtools/bundled/inspector.html",
            "view-source:http://localhost",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "file://other/share",
            "/etc/passwd",
            "ftp://example.org",
            "https://",
            &link,
            &up,
        ] {
            assert!(parse(bad, &workspace).is_err(), "{bad}");
        }
    }
}
