//! Query parameters of a URL.

use http::Uri;

/// Maximum number of parameters that are read.
const MAX_PARAMETERS: usize = 64;

/// Decoded parameters, in order.
#[derive(Debug)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes the query of a URL as a form: `+` is a space, and bytes that are not UTF-8 are replaced.
    pub fn of(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Self(pairs.into_owned().take(MAX_PARAMETERS).collect())
    }

    /// The first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
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
    fn bytes_that_are_not_utf8_are_replaced() {
        let uri: Uri = "/files?path=%ff%00".parse().unwrap();
        assert_eq!(Query::of(&uri).get("path"), Some("\u{fffd}\0"));
    }
}
