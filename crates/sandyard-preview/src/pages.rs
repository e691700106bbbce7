//! What is shown when a preview cannot be: a page for people, JSON for programs.

use std::time::Duration;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, RETRY_AFTER, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use serde_json::json;

use crate::access::accepts_html;
use crate::body::{self, PreviewBody};
use crate::problem::Problem;

const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");

/// Set on every answer that is ours and not the sandbox's, with the kind's code.
pub const PROBLEM_HEADER: HeaderName = HeaderName::from_static("x-sandyard-problem");

/// What is known about the preview that cannot be shown. Every text is escaped.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// What is wrong.
    pub problem: Problem,
    /// The sandbox as the request names it.
    pub sandbox: &'a str,
    /// The port.
    pub port: u16,
    /// Has a page for [`Problem::PortClosed`] reload itself. Only for sandboxes that have just been started: a tab
    /// left open would keep any other awake for ever.
    pub reload: Option<Duration>,
}

impl<'a> Page<'a> {
    /// Makes a page that does not reload itself.
    pub fn new(problem: Problem, sandbox: &'a str, port: u16) -> Self {
        Self {
            problem,
            sandbox,
            port,
            reload: None,
        }
    }

    /// Makes the response: HTML when the request's headers ask for it, else JSON.
    pub fn into_response(self, request_headers: &HeaderMap) -> Response<PreviewBody> {
        let html = accepts_html(request_headers);
        let (kind, text) = if html {
            ("text/html; charset=utf-8", self.html())
        } else {
            ("application/json", self.json())
        };
        let mut response = Response::new(body::full(text));
        *response.status_mut() = self.problem.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("accept"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let code = HeaderValue::from_static(self.problem.kind().code());
        headers.insert(PROBLEM_HEADER, code);
        if self.problem == Problem::NeedsKey {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.problem.status() == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }

    fn json(&self) -> String {
        let text = self.problem.text(self.port);
        json!({
            "detail": text.message,
            "code": self.problem.kind().code(),
            "hint": text.hint,
            "sandbox_id": self.sandbox,
            "port": self.port,
        })
        .to_string()
    }

    fn html(&self) -> String {
        let text = self.problem.text(self.port);
        let reload = self
            .reload
            .filter(|_| self.problem == Problem::PortClosed)
            .map(|after| after.as_secs().max(1));
        let refresh = reload.map_or(String::new(), |seconds| {
            format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">\n")
        });
        let note = reload.map_or(
            "",
            |_| "<p class=\"quiet\">This page reloads automatically.</p>\n",
        );
        let title = text.title;
        let message = escape(&text.message);
        let hint = with_code(&escape(&text.hint));
        let sandbox = escape(self.sandbox);
        let (port, status) = (self.port, self.problem.status().as_u16());
        let code = self.problem.kind().code();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"robots\" content=\"noindex\">\n{refresh}<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <p class=\"port\"><b>:{port}</b> {sandbox}</p>\n<h1>{title}</h1>\n<p>{message}</p>\n\
             <p class=\"hint\">{hint}</p>\n{note}<footer>{status} {code} · Sandyard</footer>\n\
             </main>\n</body>\n</html>\n"
        )
    }
}

const STYLE: &str = "\
:root{color-scheme:light dark;--back:#f6f4ef;--card:#fff;--text:#23211d;--soft:#6f6a60;--line:#e3ded3;--mark:#b4691f}\
@media(prefers-color-scheme:dark){:root{--back:#171613;--card:#201f1b;--text:#ece8df;--soft:#9c968a;--line:#35322b;--mark:#e0a05a}}\
*{box-sizing:border-box}\
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--back);color:var(--text);font:16px/1.55 system-ui,sans-serif}\
main{width:100%;max-width:34rem;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:14px}\
h1{margin:.25rem 0 .75rem;font-size:1.5rem;line-height:1.25}\
p{margin:0 0 .75rem;overflow-wrap:anywhere}\
code,.port{font:14px/1.5 ui-monospace,monospace}\
code{padding:.1em .35em;border-radius:5px;background:var(--back)}\
.port{color:var(--soft)}.port b{color:var(--mark)}\
.hint{padding:.75rem 1rem;border-left:3px solid var(--mark);background:var(--back);border-radius:0 8px 8px 0}\
.quiet,footer{color:var(--soft);font-size:.85rem}\
footer{margin-top:1.5rem;padding-top:1rem;border-top:1px solid var(--line)}";

/// Makes text harmless in HTML and in its attributes.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Turns pairs of backticks into code.
fn with_code(safe: &str) -> String {
    let mut marked = String::new();
    for (index, piece) in safe.split('`').enumerate() {
        match index % 2 {
            0 => marked.push_str(piece),
            _ => marked.push_str(&format!("<code>{piece}</code>")),
        }
    }
    marked
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
