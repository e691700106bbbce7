//! Lists, page by page, each within its own time: how many pages there are is not known before.

use http::Method;
use reqwest::RequestBuilder;
use sandyard_provider::Result;
use serde::de::DeserializeOwned;

use super::Shared;
use super::error::{odd, timed_out};
use super::model::{Page, Sandbox, Snapshot};

/// Most pages: more than anybody has, and an end where the other side knows none.
const MAX_PAGES: u64 = 1000;
const PAGE: &str = "100";

/// How the next page is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// By what the page before says.
    Cursor(String),
    /// By its number.
    Number(u64),
}

impl<T> Page<T> {
    /// How to go on; none: this was the last. `number` is that of this page, if it does not say.
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
            // COMPAT(daytona): pages have numbers where nothing says what comes next; the newest API has both kinds of lists.
            None => {
                let number = page.unwrap_or(number);
                let is_last = total_pages.is_none_or(|total| number >= total);
                (!is_last).then(|| Next::Number(number.saturating_add(1)))
            }
        }
    }
}

impl Shared {
    /// All sandboxes of ours, and the time it was there.
    pub(super) async fn list(&self) -> Result<(Vec<Sandbox>, i64)> {
        let (labels, before) = (self.whose.labels(), self.known.ids());
        let (mut all, at_ms) = self
            .pages::<Sandbox>("list", || {
                let asked = self.api.to(Method::GET, &["sandbox"]);
                asked.query(&[("labels", labels.as_str())])
            })
            .await?;
        all.retain(|one| self.whose.is_of(one));
        self.known.forget_gone(before, &all);
        Ok((all, at_ms))
    }

    /// All snapshots there.
    pub(super) async fn all_snapshots(&self) -> Result<Vec<Snapshot>> {
        let asked = || self.api.to(Method::GET, &["snapshots"]);
        let (all, _) = self.pages("templates", asked).await?;
        Ok(all)
    }

    /// Goes through all pages, and tells the time it was there.
    async fn pages<T: DeserializeOwned>(
        &self,
        what: &str,
        asked: impl Fn() -> RequestBuilder,
    ) -> Result<(Vec<T>, i64)> {
        let (mut all, mut next) = (Vec::new(), None);
        for number in 1..=MAX_PAGES {
            let mut asked = asked().query(&[("limit", PAGE)]);
            asked = match &next {
                None => asked,
                Some(Next::Cursor(cursor)) => asked.query(&[("cursor", cursor)]),
                Some(Next::Number(number)) => asked.query(&[("page", number)]),
            };
            let most = self.timeouts.quick;
            let answer = self.api.ask_at::<Page<T>>(what, asked);
            let answer = tokio::time::timeout(most, answer).await;
            let (page, at_ms) = answer.unwrap_or_else(|_| Err(timed_out(what, most)))?;
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
        Err(odd(what, "it has no end"))
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
    fn pages_follow_each_other_in_the_new_way_and_in_the_old() {
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
