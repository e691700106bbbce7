//! The query of a URL.

use http::Uri;

/// Most parameters looked at.
const MAX_PARAMETERS: usize = 64;

/// Decoded parameters, in order.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes the query of a URL; bytes that are no UTF-8 are replaced.
    pub(crate) fn of(uri: &Uri) -> Self {
        let pairs = uri.query().unwrap_or_default().split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty()).take(MAX_PARAMETERS);
        Self(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(key), decode(value))
                })
                .collect(),
        )
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// Undoes percent-encoding, and `+` for a space as forms have it.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%').then(|| hex_byte(tail)).flatten();
        rest = match escaped {
            Some(byte) => {
                bytes.push(byte);
                &tail[2..]
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                tail
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = *text.first_chunk::<2>()?;
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let uri: Uri = "/files?path=%2Ftmp%2Fa+b%20c&username=user&x&y=%zz%4"
            .parse()
            .unwrap();
        let query = Query::of(&uri);
        assert_eq!(query.get("path"), Some("/tmp/a b c"));
        assert_eq!(query.get("username"), Some("user"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("y"), Some("%zz%4"));
        assert_eq!(query.get("z"), None);
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        let uri: Uri = "/files?path=%ff%00".parse().unwrap();
        assert_eq!(Query::of(&uri).get("path"), Some("\u{fffd}\0"));
    }
}
