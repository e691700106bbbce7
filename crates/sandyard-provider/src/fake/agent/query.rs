//! The query of a URL.

use http::Uri;

/// Decoded parameters, in order.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes the query of a URL; bytes that are no text are replaced.
    pub(super) fn of(uri: &Uri) -> Self {
        let pairs = uri.query().unwrap_or_default().split('&').take(64);
        let pairs = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first value of a parameter.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// Undoes percent-encoding, and `+` for a space.
fn decode(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        match (byte, hex(bytes.clone())) {
            (b'%', Some(value)) => {
                decoded.push(value);
                bytes.nth(1);
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The byte that the next two hexadecimal digits are.
fn hex(mut ahead: std::str::Bytes<'_>) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (high, low) = (digit(ahead.next()?)?, digit(ahead.next()?)?);
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let uri: Uri = "/files?path=%2Ftmp%2Fa+b%20c&x&y=%zz%4&z=%ff"
            .parse()
            .unwrap();
        let query = Query::of(&uri);
        assert_eq!(query.get("path"), Some("/tmp/a b c"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("y"), Some("%zz%4"));
        assert_eq!(query.get("z"), Some("\u{fffd}"));
        assert_eq!(query.get("none"), None);
    }
}
