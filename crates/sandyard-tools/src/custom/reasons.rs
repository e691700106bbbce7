//! Why something went wrong with a server, in words that a model may see: there may be keys in the server's address.

use std::error::Error;

use reqwest::Url;

use super::config::Config;
use crate::reply::cut;

/// How the HTTP library tells an address, which after a redirect is not the one it was given.
const FOR_URL: &str = " for url (";

/// What went wrong, with its causes.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        words.push_str(": ");
        words.push_str(&next.to_string());
        cause = next.source();
    }
    words
}

/// The words without the server's address, cut to size. In this order: a part of an address would not be recognised.
pub(super) fn shown(config: &Config, words: String, limit: usize) -> String {
    let words = match config {
        Config::Address { url, .. } => without(url, words),
        Config::Program { .. } => words,
    };
    cut(words, limit)
}

fn without(url: &Url, words: String) -> String {
    let mut words = words.replace(url.as_str(), "…");
    while let Some(start) = words.find(FOR_URL) {
        let address = &words[start + FOR_URL.len()..];
        let address = address
            .split(char::is_whitespace)
            .next()
            .unwrap_or_default();
        // There may be brackets in it, too.
        let length = address.rfind(')').map_or(address.len(), |end| end + 1);
        words.replace_range(start..start + FOR_URL.len() + length, "");
    }
    // Servers repeat what they were asked for.
    for part in [url.query(), url.password()].into_iter().flatten() {
        if !part.is_empty() {
            words = words.replace(part, "…");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_left_in_what_went_wrong() {
        let url = Url::parse("http://me:secret@x.example/mcp?key=hidden").unwrap();
        for (words, expected) in [
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
            assert_eq!(without(&url, words.to_owned()), expected);
        }
        let config = Config::Address {
            url: url.clone(),
            headers: std::collections::HashMap::new(),
            is_older: false,
        };
        // Wherever it is cut.
        for limit in 0..80 {
            let words = shown(&config, format!("failed for url ({url})"), limit);
            assert!(!words.contains("hid") && !words.contains("sec"), "{words}");
        }
    }
}
