//! Words of metadata to look for, as the SDKs put them into a query.
//!
//! They encode each name and value, make a query of the pairs, and that query is the value of one parameter. So what is left
//! after the parameter was read is encoded twice: `a=b%2520c` is `{"a": "b c"}`.

use std::collections::BTreeMap;

use sandyard_service::ServiceError;

use crate::bounds;
use crate::extract::decode_query;

/// Most words to look for.
const MOST: usize = 16;

/// Reads them.
pub(crate) fn read(parameter: &str) -> Result<BTreeMap<String, String>, ServiceError> {
    let mut words = BTreeMap::new();
    for pair in parameter.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode_query(&decode_query(name)?)?;
        let value = decode_query(&decode_query(value)?)?;
        bounds::text("metadata", &name, 1, 256)?;
        bounds::text("metadata", &value, 0, 4096)?;
        words.insert(name, value);
    }
    if words.len() > MOST {
        return Err(ServiceError::invalid(
            "metadata",
            format!("at most {MOST} words of metadata can be looked for"),
        ));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_encoded_twice() {
        let words = read("a=b%2520c&u%2526v=%25C3%25BC&e=").unwrap();
        let expected = [("a", "b c"), ("e", ""), ("u&v", "ü")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(words, BTreeMap::from(expected));
        assert_eq!(read("user=abc").unwrap()["user"], "abc");
        assert!(read("").unwrap().is_empty());
        assert!(read("a=%25").is_err());
        assert!(read("=1").is_err());
    }
}
