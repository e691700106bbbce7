//! Lists in pages: a header holds the token of the next page.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::prelude::*;

/// Header with the token of the next page.
const NEXT: HeaderName = HeaderName::from_static("x-next-token");

/// Largest and default number of items on a page.
pub(crate) const MAX_ITEMS: usize = 100;

/// Part of a list.
pub(crate) type ItemPage<T> = (HeaderMap, Json<Vec<T>>);

/// A page with the token of the next one.
pub(crate) fn page<T: Serialize>(items: Vec<T>, next: Option<String>) -> ItemPage<T> {
    let mut headers = HeaderMap::new();
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(&next).ok()) {
        headers.insert(NEXT, next);
    }
    (headers, Json(items))
}

/// Cuts a page from a complete list. The token is the name of the last item of the page before.
pub(crate) fn cut<T>(
    mut items: Vec<T>,
    name: impl Fn(&T) -> &str,
    limit: usize,
    after: Option<&str>,
) -> ServiceResult<(Vec<T>, Option<String>)> {
    if let Some(after) = after {
        let last = items.iter().position(|item| name(item) == after);
        let last = last.ok_or_else(|| {
            ServiceError::invalid("nextToken", "unknown page token")
                .hint("start again without `nextToken`")
        })?;
        items.drain(..=last);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items
        .last()
        .filter(|_| has_more)
        .map(|item| name(item).to_owned());
    Ok((items, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_no_gaps() {
        let all = ["a", "b", "c", "d", "e"];
        let (mut seen, mut next) = (Vec::new(), None::<String>);
        loop {
            let (page, after) = cut(all.to_vec(), |name| name, 2, next.as_deref()).unwrap();
            seen.extend(page);
            next = after;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        assert!(cut(all.to_vec(), |name| name, 2, Some("x")).is_err());
    }
}
