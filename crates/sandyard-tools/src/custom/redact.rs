//! Error texts about a server that a model may see. Keys in the server's URL are removed.

use std::error::Error;

use reqwest::Url;

use super::config::Config;
use crate::reply::truncate;

/// How the HTTP library introduces a URL. After a redirect it is not the configured one.
const FOR_URL: &str = " for url (";

/// An error with its causes.
pub(super) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

/// Removes the server's URL from a text, then truncates it. Not in the other order: a truncated URL would not be recognised.
pub(super) fn redacted(config: &Config, text: String, limit: usize) -> String {
    let text = match config {
        Config::Address { url, .. } => without_url(url, text),
        Config::Program { .. } => text,
    };
    truncate(text, limit)
}

fn without_url(url: &Url, text: String) -> String {
    let mut text = text.replace(url.as_str(), "…");
    while let Some(start) = text.find(FOR_URL) {
        let address = &text[start + FOR_URL.len()..];
        let address = address
            .split(char::is_whitespace)
            .next()
            .unwrap_or_default();
        // The URL may contain parentheses.
        let length = address.rfind(')').map_or(address.len(), |end| end + 1);
        text.replace_range(start..start + FOR_URL.len() + length, "");
    }
    // Servers may repeat parts of the URL.
    for part in [url.query(), url.password()].into_iter().flatten() {
        if !part.is_empty() {
            text = text.replace(part, "…");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_contain_the_url() {
        let url = Url::parse("http://me:secret@x.example/mcp?key=hidden").unwrap();
        for (text, expected) in [
            ("nothing to hide (really)", "nothing to hide (really)"),
            (
                "error sending request for url (http://me:secret@x.example/mcp?key=hidden): refused",
                "error sending request: refused",
            ),
            (
                "failed for url (http://x.example/other(1)?key=hidden), when send request",
                "failed, when send request",
            ),
            ("failed for url (http://x.example/?key=hid", "failed"),
            (
                "no such path: /mcp?key=hidden of me:secret@",
                "no such path: /mcp?… of me:…@",
            ),
        ] {
            assert_eq!(without_url(&url, text.to_owned()), expected);
        }
        let config = Config::Address {
            url: url.clone(),
            headers: std::collections::HashMap::new(),
            is_sse: false,
        };
        // Whatever the limit is.
        for limit in 0..80 {
            let text = redacted(&config, format!("failed for url ({url})"), limit);
            assert!(!text.contains("hid") && !text.contains("sec"), "{text}");
        }
    }
}
