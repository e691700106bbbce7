//! Cookies on their way in and out.

use http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};

use crate::names::is_own_cookie;

/// Gives the values of a cookie. There may be several: a neighbour can set one on the domain above.
pub(crate) fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(COOKIE)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Takes our cookies off a request and leaves the others as they are.
pub(crate) fn strip_own(headers: &mut HeaderMap) {
    let kept: Vec<HeaderValue> = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(without_own)
        .collect();
    headers.remove(COOKIE);
    for value in kept {
        headers.append(COOKIE, value);
    }
}

/// Works on bytes: what programs put into cookies is not always text.
fn without_own(value: &HeaderValue) -> Option<HeaderValue> {
    let pairs: Vec<&[u8]> = value
        .as_bytes()
        .split(|byte| *byte == b';')
        .filter(|pair| !pair.is_empty() && !is_own(pair))
        .collect();
    let joined = pairs.join(&b';');
    HeaderValue::from_bytes(joined.trim_ascii())
        .ok()
        .filter(|value| !value.is_empty())
}

fn is_own(pair: &[u8]) -> bool {
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or(pair);
    String::from_utf8(name.trim_ascii().to_vec()).is_ok_and(|name| is_own_cookie(&name))
}

/// Keeps the cookies of a response to the preview that sets them.
///
/// `Domain` goes: a preview has no business on its neighbours' hosts or on the one above. Ours cannot be set by a
/// sandbox. In the path form `Path` gets the prefix.
pub(crate) fn confine(headers: &mut HeaderMap, prefix: Option<&str>) {
    let kept: Vec<HeaderValue> = headers
        .get_all(SET_COOKIE)
        .iter()
        .filter(|value| !is_own(value.as_bytes()))
        .filter_map(|value| confined(value, prefix))
        .collect();
    headers.remove(SET_COOKIE);
    for value in kept {
        headers.append(SET_COOKIE, value);
    }
}

fn confined(value: &HeaderValue, prefix: Option<&str>) -> Option<HeaderValue> {
    let mut parts = value.as_bytes().split(|byte| *byte == b';');
    let mut out = parts.next()?.to_vec();
    for attribute in parts {
        let mut sides = attribute.splitn(2, |byte| *byte == b'=');
        let name = sides.next().unwrap_or_default().trim_ascii();
        let path = sides.next().unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"domain") {
            continue;
        }
        out.push(b';');
        match prefix {
            Some(prefix) if name.eq_ignore_ascii_case(b"path") => {
                out.extend_from_slice(b" Path=");
                out.extend_from_slice(&path_below(prefix, path));
            }
            _ => out.extend_from_slice(attribute),
        }
    }
    HeaderValue::from_bytes(&out).ok()
}

/// Puts a path below the prefix, unless it is there already.
fn path_below(prefix: &str, path: &[u8]) -> Vec<u8> {
    if !path.starts_with(b"/") {
        // A browser ignores such a path; the prefix is what it would come to.
        return prefix.as_bytes().to_vec();
    }
    if is_below(prefix, path) {
        return path.to_vec();
    }
    let tail: &[u8] = if path == b"/" { b"" } else { path };
    [prefix.as_bytes(), tail].concat()
}

/// Tells whether a path is the prefix or below it.
pub(crate) fn is_below(prefix: &str, path: &[u8]) -> bool {
    path.strip_prefix(prefix.as_bytes())
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'/' | b'?' | b'#')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded_cookie(cookie: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_static(cookie));
        strip_own(&mut headers);
        headers
            .get(COOKIE)
            .map(|value| value.to_str().unwrap().to_owned())
    }

    fn set(cookie: &'static str, prefix: Option<&str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(SET_COOKIE, HeaderValue::from_static(cookie));
        confine(&mut headers, prefix);
        headers
            .get(SET_COOKIE)
            .map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn only_our_cookies_are_taken_off() {
        assert_eq!(
            forwarded_cookie("a=1; sandyard_preview=t; b=2").as_deref(),
            Some("a=1; b=2")
        );
        assert_eq!(
            forwarded_cookie("sandyard_preview=t; b=\"x y\"").as_deref(),
            Some("b=\"x y\"")
        );
        assert_eq!(
            forwarded_cookie("sandyard_preview=t;Sandyard_Session=u"),
            None
        );
        assert_eq!(
            forwarded_cookie("xsandyard_preview=1; sandyard=2").as_deref(),
            Some("xsandyard_preview=1; sandyard=2")
        );
        assert_eq!(forwarded_cookie("sandyard_preview").as_deref(), None);
    }

    #[test]
    fn cookies_stay_with_the_preview_that_sets_them() {
        let prefix = Some("/p/abc/3000");
        assert_eq!(
            set("a=1; Path=/", prefix).as_deref(),
            Some("a=1; Path=/p/abc/3000")
        );
        assert_eq!(
            set("a=1; path=/x; HttpOnly", prefix).as_deref(),
            Some("a=1; Path=/p/abc/3000/x; HttpOnly")
        );
        assert_eq!(
            set("a=1;Path=/p/abc/3000/y", prefix).as_deref(),
            Some("a=1; Path=/p/abc/3000/y")
        );
        assert_eq!(
            set("a=1;Path=/p/abc/30001", prefix).as_deref(),
            Some("a=1; Path=/p/abc/3000/p/abc/30001")
        );
        assert_eq!(
            set("a=1; Path=; Path=x", prefix).as_deref(),
            Some("a=1; Path=/p/abc/3000; Path=/p/abc/3000")
        );
        assert_eq!(
            set("a=Path=/; Secure", prefix).as_deref(),
            Some("a=Path=/; Secure")
        );
        assert_eq!(
            set("a=1; DOMAIN=.example.com; Path=/x", None).as_deref(),
            Some("a=1; Path=/x")
        );
        assert_eq!(set("sandyard_preview=evil; Path=/", None), None);
    }

    #[test]
    fn every_value_of_a_cookie_is_seen() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; b=2;a=3"));
        headers.append(COOKIE, HeaderValue::from_static("a=x=y"));
        assert_eq!(values(&headers, "a").collect::<Vec<_>>(), ["1", "3", "x=y"]);
    }
}
