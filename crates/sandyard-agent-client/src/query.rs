//! Query strings.

use sandyard_core::percent::encode_path;

/// Appends parameters to a path, percent-encoded.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut uri = path.to_owned();
    for (index, (key, value)) in parameters.iter().enumerate() {
        uri.push(if index == 0 { '?' } else { '&' });
        uri.push_str(&format!("{key}={}", encode_path(value)));
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_down_to_the_byte() {
        assert_eq!(
            with_query("/files", &[("path", "/a b/ü&?#%+"), ("username", "u")]),
            "/files?path=/a%20b/%C3%BC%26%3F%23%25%2B&username=u"
        );
    }
}
