//! Which addresses are opened.

use std::net::IpAddr;

use reqwest::Url;

use crate::reply::Problem;
use crate::workspace::Workspace;

/// Longest address.
const MAX_LENGTH: usize = 64 * 1024;

/// The address somebody means: without a scheme it is `http` on this machine and for numbers, else `https`.
pub(crate) fn read(text: &str, workspace: &Workspace) -> Result<Url, Problem> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_LENGTH {
        return Err(Problem::new(format!(
            "the URL is empty or longer than {MAX_LENGTH} bytes"
        )));
    }
    let whole = if has_scheme(text) {
        text.to_owned()
    } else if text.starts_with('/') {
        format!("file://{text}")
    } else if is_near(text) {
        format!("http://{text}")
    } else {
        format!("https://{text}")
    };
    let url = Url::parse(&whole).map_err(|error| {
        Problem::new(format!(
            "{} is not a URL: {error}",
            super::notes::short(text, 200)
        ))
    })?;
    check(&url, workspace)?;
    Ok(url)
}

/// Whether a page of this address may be looked at.
pub(super) fn check(url: &Url, workspace: &Workspace) -> Result<(), Problem> {
    match url.scheme() {
        "http" | "https" | "data" | "blob" | "about" => Ok(()),
        "file" => {
            let path = url
                .to_file_path()
                .map_err(|()| Problem::new("a file's URL must be file:///path, of this machine"))?;
            workspace.resolve(&path.to_string_lossy()).map(drop)
        }
        other => Err(Problem::new(format!(
            "{other}: is not opened; use an http or https address, a data: address or a file:// of the workspace"
        ))),
    }
}

/// `host:port` has a colon too, but a number after it.
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

/// Whether a text without a scheme begins with this machine or a number.
fn is_near(text: &str) -> bool {
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
    fn addresses_are_completed_and_bad_ones_refused() {
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
            assert_eq!(read(text, &workspace).unwrap().as_str(), url, "{text}");
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
            assert!(read(bad, &workspace).is_err(), "{bad}");
        }
    }
}
