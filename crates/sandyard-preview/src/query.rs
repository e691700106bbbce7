//! The token in a query.

use sandyard_core::percent::decode_lenient;

use crate::names::TOKEN_QUERY;

/// Gives the value of the token parameter, decoded.
pub(crate) fn token(query: &str) -> Option<String> {
    let value = query.split('&').find_map(value_of_token)?;
    percent_decode(value)
}

/// Gives the query without any token parameter, the rest untouched; `None` when nothing is left.
pub(crate) fn without_token(query: &str) -> Option<String> {
    let rest: Vec<&str> = query
        .split('&')
        .filter(|pair| value_of_token(pair).is_none())
        .collect();
    let rest = rest.join("&");
    (!rest.is_empty()).then_some(rest)
}

/// Takes the token out of a path or a URL.
pub(crate) fn scrub(url: &str) -> String {
    let (url, fragment) = match url.split_once('#') {
        Some((url, fragment)) => (url, Some(fragment)),
        None => (url, None),
    };
    let mut clean = match url.split_once('?') {
        None => url.to_owned(),
        Some((path, query)) => match without_token(query) {
            Some(rest) => format!("{path}?{rest}"),
            None => path.to_owned(),
        },
    };
    if let Some(fragment) = fragment {
        clean.push('#');
        clean.push_str(fragment);
    }
    clean
}

fn value_of_token(pair: &str) -> Option<&str> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let is_token = name == TOKEN_QUERY || percent_decode(name).as_deref() == Some(TOKEN_QUERY);
    is_token.then_some(value)
}

/// Decodes `%XX`; `None` when the result is not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    String::from_utf8(decode_lenient(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_and_decoded() {
        assert_eq!(token("a=1&sandyard_token=x.y-z").as_deref(), Some("x.y-z"));
        assert_eq!(token("sandyard_token=a%2Bb%3d").as_deref(), Some("a+b="));
        assert_eq!(token("sandyard_token").as_deref(), Some(""));
        assert_eq!(token("xsandyard_token=1&sandyard_tokenx=2"), None);
        assert_eq!(token("sandyard_token=%ff"), None);
        assert_eq!(token("sandyard_token=100%").as_deref(), Some("100%"));
    }

    #[test]
    fn every_token_is_taken_out_and_nothing_else() {
        assert_eq!(scrub("/a?sandyard_token=x"), "/a");
        assert_eq!(
            scrub("/a?b=%20+&sandyard_token=x&c&&sandyard%5Ftoken=y"),
            "/a?b=%20+&c&"
        );
        assert_eq!(
            scrub("http://h/a?x=1&sandyard_token=x#f?sandyard_token"),
            "http://h/a?x=1#f?sandyard_token"
        );
        assert_eq!(scrub("/a?b?sandyard_token=1"), "/a?b?sandyard_token=1");
    }
}
