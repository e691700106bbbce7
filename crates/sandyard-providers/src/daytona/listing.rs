//! Lists, page by page. Each page has its own timeout, because their number is not known.

use http::Method;
use reqwest::RequestBuilder;
use sandyard_provider::Result;
use serde::de::DeserializeOwned;

use super::Shared;
use super::error::{timed_out, unreadable};
use super::model::{Page, Sandbox, Snapshot};

/// Maximum number of pages, in case the API never ends a list.
const MAX_PAGES: u64 = 1000;
const PAGE: &str = "100";

/// How the next page is requested.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// By the cursor of the previous page.
    Cursor(String),
    /// By its number.
    Number(u64),
}

impl<T> Page<T> {
    /// How to request the next page; `None` after the last. `number` is that of this page if it does not say.
    fn next(&self, number: u64) -> Option<Next> {
        let Self::Part {
            next_cursor,
            page,
            total_pages,
            ..
        } = self
        else {
            return None;
        };
        match next_cursor.as_deref() {
            Some(cursor) if !cursor.is_empty() => Some(Next::Cursor(cursor.to_owned())),
            Some(_) => None,
            // COMPAT(daytona): pages are numbered when there is no cursor; the newest API has both kinds of lists.
            None => {
                let number = page.unwrap_or(number);
                let is_last = total_pages.is_none_or(|total| number >= total);
                (!is_last).then(|| Next::Number(number.saturating_add(1)))
            }
        }
    }
}

impl Shared {
    /// All sandboxes of this installation, and the server's time.
    pub(super) async fn list(&self) -> Result<(Vec<Sandbox>, i64)> {
        let (labels, before) = (self.owner.labels(), self.cache.ids());
        let (mut all, at_ms) = self
            .pages::<Sandbox>("list", || {
                let request = self.api.to(Method::GET, &["sandbox"]);
                request.query(&[("labels", labels.as_str())])
            })
            .await?;
        all.retain(|sandbox| self.owner.is_owned(sandbox));
        self.cache.retain_listed(before, &all);
        Ok((all, at_ms))
    }

    /// All snapshots of the account.
    pub(super) async fn all_snapshots(&self) -> Result<Vec<Snapshot>> {
        let request = || self.api.to(Method::GET, &["snapshots"]);
        let (all, _) = self.pages("templates", request).await?;
        Ok(all)
    }

    /// Reads all pages; returns them with the server's time.
    async fn pages<T: DeserializeOwned>(
        &self,
        what: &str,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<(Vec<T>, i64)> {
        let (mut all, mut next) = (Vec::new(), None);
        for number in 1..=MAX_PAGES {
            let mut request = request().query(&[("limit", PAGE)]);
            request = match &next {
                None => request,
                Some(Next::Cursor(cursor)) => request.query(&[("cursor", cursor)]),
                Some(Next::Number(number)) => request.query(&[("page", number)]),
            };
            let timeout = self.timeouts.quick;
            let answer = self.api.ask_with_time::<Page<T>>(what, request);
            let answer = tokio::time::timeout(timeout, answer).await;
            let (page, at_ms) = answer.unwrap_or_else(|_| Err(timed_out(what, timeout)))?;
            let after = page.next(number);
            all.extend(page.into_items());
            if after.is_none() {
                return Ok((all, at_ms));
            }
            if after == next {
                break;
            }
            next = after;
        }
        Err(unreadable(what, "it has too many pages"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &str, number: u64) -> Option<Next> {
        let page: Page<Sandbox> = serde_json::from_str(text).expect("a page");
        page.next(number)
    }

    #[test]
    fn pages_are_followed_by_cursor_and_by_number() {
        let cursor = |text: &str| Some(Next::Cursor(text.to_owned()));
        assert_eq!(next(r#"{"items": [], "nextCursor": "a"}"#, 1), cursor("a"));
        assert_eq!(next(r#"{"items": [], "nextCursor": null}"#, 1), None);
        assert_eq!(next(r#"{"items": [], "nextCursor": ""}"#, 1), None);
        let old = r#"{"items": [], "total": 201, "page": 2, "totalPages": 3}"#;
        assert_eq!(next(old, 7), Some(Next::Number(3)));
        let last = r#"{"items": [], "total": 201, "page": 3, "totalPages": 3}"#;
        assert_eq!(next(last, 7), None);
        assert_eq!(
            next(r#"{"items": [], "totalPages": 3}"#, 2),
            Some(Next::Number(3))
        );
        assert_eq!(next(r#"[{"id": "a"}]"#, 1), None);
    }
}
