//! The encodings in which a host may send a secret back.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use sandyard_core::percent;

/// Shorter values are not searched: they would be found by chance, and are not secret anyway.
const MIN_BYTES: usize = 4;

/// A secret's value and its placeholder in every encoding that is searched in responses: plain, JSON, HTML, URL, base64.
pub(super) fn of(value: &str, placeholder: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    if value.len() < MIN_BYTES {
        return Vec::new();
    }
    let encodings: [fn(&str) -> String; 11] = [
        str::to_owned,
        in_json,
        |text| in_json(text).replace('/', "\\/"),
        in_html,
        percent::encode,
        |text| percent::encode(text).replace("%20", "+"),
        in_url_lower_case,
        |text| STANDARD.encode(text),
        |text| STANDARD_NO_PAD.encode(text),
        |text| URL_SAFE.encode(text),
        |text| URL_SAFE_NO_PAD.encode(text),
    ];
    encodings
        .iter()
        .map(|encode| (encode(value).into_bytes(), encode(placeholder).into_bytes()))
        .collect()
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inner = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

fn in_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Percent-encodes with lower-case digits: each character separately, so that plain letters keep their case.
fn in_url_lower_case(text: &str) -> String {
    let encode_one = |letter: char| match percent::encode(letter.encode_utf8(&mut [0; 4])) {
        encoded if encoded.starts_with('%') => encoded.to_ascii_lowercase(),
        plain => plain,
    };
    text.chars().map(encode_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(value: &str) -> Vec<String> {
        let forms = of(value, "P");
        forms
            .into_iter()
            .map(|(from, _)| String::from_utf8(from).unwrap())
            .collect()
    }

    #[test]
    fn a_secret_is_searched_in_json_url_and_base64_encodings() {
        let forms = texts("pa\"s /ß?");
        for form in [
            "pa\"s /ß?",
            "pa\\\"s /ß?",
            "pa\\\"s \\/ß?",
            "pa&quot;s /ß?",
            "pa%22s%20%2f%c3%9f%3f",
            "pa%22s%20%2F%C3%9F%3F",
            "pa%22s+%2F%C3%9F%3F",
            "cGEicyAvw58/",
            "cGEicyAvw58_",
        ] {
            assert!(
                forms.iter().any(|found| found == form),
                "{form} in {forms:?}"
            );
        }
    }

    #[test]
    fn short_values_are_not_searched() {
        assert!(of("abc", "P").is_empty());
    }
}
