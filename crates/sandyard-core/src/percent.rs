//! Percent-encoding of text for URLs and headers (RFC 3986).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything except RFC 3986's unreserved characters.
const COMPONENT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const PATH: AsciiSet = COMPONENT.remove(b'/');

/// Encodes every byte except letters, digits and `-._~`, so that the text fits any part of a URL.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, &COMPONENT).to_string()
}

/// Encodes like [`encode`], and leaves `/` as it is.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, &PATH).to_string()
}

/// Decodes `%XX`; a `%` without two hexadecimal digits stays as it is.
pub fn decode_lenient(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

/// Decodes `%XX`. `None`: a `%` lacks its two hexadecimal digits, or the result is not UTF-8.
pub fn decode_strict(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    parts.next();
    let is_escape = |part: &str| {
        let digits = part.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !parts.all(is_escape) {
        return None;
    }
    String::from_utf8(decode_lenient(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_leaves_only_unreserved_characters() {
        assert_eq!(encode("a-._~/ü %+\0"), "a-._~%2F%C3%BC%20%25%2B%00");
        assert_eq!(encode("p@s/s:w?r%d é"), "p%40s%2Fs%3Aw%3Fr%25d%20%C3%A9");
        assert_eq!(encode_path("/a b/c"), "/a%20b/c");
    }

    #[test]
    fn strict_decoding_refuses_broken_escapes_and_invalid_utf8() {
        assert_eq!(decode_strict("a%20b+%C3%bc").as_deref(), Some("a b+ü"));
        assert_eq!(decode_strict("%2525").as_deref(), Some("%25"));
        for broken in ["%", "%4", "%zz", "a%%20", "%+1", "%ff"] {
            assert_eq!(decode_strict(broken), None, "{broken}");
        }
    }

    #[test]
    fn lenient_decoding_keeps_broken_escapes() {
        assert_eq!(decode_lenient("100%.db%20%zz%4"), b"100%.db %zz%4");
    }
}
