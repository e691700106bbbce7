//! Labels to filter by, as the SDKs put them into a query.
//!
//! The SDKs encode each name and value, join the pairs to a query, and send that query as the value of one parameter. So the value of
//! the parameter is encoded twice: `a=b%2520c` is `{"a": "b c"}`.

use std::collections::BTreeMap;

use sandyard_service::ServiceResult;

use crate::bounds;
use crate::extract::decode_query;

/// Parses the labels.
pub(crate) fn read(parameter: &str) -> ServiceResult<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for pair in parameter.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode_query(&decode_query(name)?)?;
        let value = decode_query(&decode_query(value)?)?;
        labels.insert(name, value);
    }
    bounds::metadata_filters(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_encoded_twice() {
        let labels = read("a=b%2520c&u%2526v=%25C3%25BC&e=").unwrap();
        let expected = [("a", "b c"), ("e", ""), ("u&v", "ü")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(labels, BTreeMap::from(expected));
        assert_eq!(read("user=abc").unwrap()["user"], "abc");
        assert!(read("").unwrap().is_empty());
        assert!(read("a=%25").is_err());
        assert!(read("=1").is_err());
    }
}
