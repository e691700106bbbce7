//! The query of a URL.

use http::Uri;

/// Decoded parameters, in order.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes the query of a URL as a form: `+` is a space, and bytes that are not UTF-8 are replaced.
    pub(super) fn of(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Self(pairs.into_owned().take(64).collect())
    }

    /// The first value of a parameter.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
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
