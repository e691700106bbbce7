//! `web_visit` and `read_remote_image`: fetching a page or an image.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use schemars::JsonSchema;
use serde::Deserialize;

use super::http;
use super::markdown::readable;
use crate::browser::address;
use crate::files::kind::{Kind, START};
use crate::reply::{Answer, MAX_IMAGE, Problem, Reply, Result, truncate};
use crate::tool::{Effect, Tool, cancellable};
use crate::tool_state::ToolState;

/// Maximum size of a page, in bytes.
const MAX_BYTES: usize = 5 * 1024 * 1024;
/// Maximum length of a page's text, in bytes.
const MAX_TEXT: usize = 60_000;
/// Time limit.
const TIME_LIMIT: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Visit {
    /// URL of the page.
    url: String,
    /// What to look for on the page. It is only repeated in the result; no model processes the page.
    prompt: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Image {
    /// URL of a PNG, JPEG, GIF or WebP image, at most 5 MiB.
    url: String,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        cancellable("web_visit", Effect::ReadsExternal, visit)
            .title("Fetch a page")
            .description("Fetch a page without a browser and return its text as Markdown. Scripts do not run: use browser_navigation for pages \
             that need them. Text and JSON are returned unchanged, images as images. `prompt` is only repeated in the result."),
        cancellable("read_remote_image", Effect::ReadsExternal, image)
            .title("View an image from the web")
            .description("Fetch an image from a URL and return it as an image."),
    ]
}

/// A fetched resource.
struct Fetched {
    url: Url,
    status: StatusCode,
    /// The content type, in lower case.
    media_type: String,
    body: Vec<u8>,
    is_cut: bool,
}

async fn fetch(tool_state: &ToolState, url: &str) -> Result<Fetched> {
    let url = address::parse(url, &tool_state.workspace)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Problem::new(
            "only http and https URLs can be fetched; use Read for files",
        ));
    }
    let work = async {
        let sent = http::client(&url).await?.get(url.clone()).send().await;
        let mut response = sent.map_err(|error| http::problem(&error))?;
        let media_type = response.headers().get(CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_ascii_lowercase();
        let (body, is_cut) = http::body_up_to(&mut response, MAX_BYTES).await?;
        Ok(Fetched {
            url: response.url().clone(),
            status: response.status(),
            media_type,
            body,
            is_cut,
        })
    };
    let fetched: Result<_> = match tokio::time::timeout(TIME_LIMIT, work).await {
        Ok(fetched) => fetched,
        Err(_) => Err(Problem::new(format!(
            "it took longer than {} seconds",
            TIME_LIMIT.as_secs()
        ))),
    };
    fetched.map_err(|problem| Problem::new(format!("{url} cannot be fetched: {problem}")))
}

async fn visit(tool_state: Arc<ToolState>, Visit { url, prompt }: Visit) -> Answer {
    let fetched = fetch(&tool_state, &url).await?;
    let mut head = format!("URL: {}\n", fetched.url);
    if !fetched.status.is_success() {
        head.push_str(&format!("HTTP status: {}\n", fetched.status));
    }
    if let Some(prompt) = prompt.filter(|prompt| !prompt.trim().is_empty()) {
        head.push_str(&format!(
            "Look for: {}\n",
            truncate(prompt.to_owned(), 2000)
        ));
    }
    if fetched.is_cut {
        head.push_str(&format!("Only the first {MAX_BYTES} bytes were fetched.\n"));
    }
    let is_failure = !fetched.status.is_success();
    let kind = fetched
        .media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if image_type(&fetched.body).is_some() || kind.starts_with("image/") && kind != "image/svg+xml"
    {
        return image_reply(&fetched, head).map(|reply| reply.with_failure(is_failure));
    }
    if kind == "application/pdf" || fetched.body.starts_with(b"%PDF-") {
        head.push_str("This is a PDF: download it (curl -o file.pdf URL) and read it with Read.");
        return Ok(Reply::text(head).with_failure(is_failure));
    }
    let is_html = kind.contains("html") || kind.is_empty() && looks_like_html(&fetched.body);
    let is_text = kind.is_empty()
        || kind.starts_with("text/")
        || ["json", "xml", "javascript", "yaml"]
            .iter()
            .any(|word| kind.contains(word));
    if !is_html && (!is_text || fetched.body.contains(&0)) {
        head.push_str(&format!(
            "This is {kind}, {} bytes, which cannot be shown: download it with curl.",
            fetched.body.len()
        ));
        return Ok(Reply::text(head).with_failure(is_failure));
    }
    let text = if is_html {
        // Parsing megabytes of HTML would block other calls.
        let page = tokio::task::spawn_blocking(move || {
            readable(&decoded(&fetched.body, &fetched.media_type), &fetched.url)
        });
        let page = page
            .await
            .map_err(|_| Problem::new("the page cannot be parsed"))?;
        head.push_str(&format!("Title: {}\n", truncate(page.title, 500)));
        page.text
    } else {
        decoded(&fetched.body, &fetched.media_type)
    };
    Ok(Reply::text(format!("{head}\n{}", truncate(text, MAX_TEXT))).with_failure(is_failure))
}

async fn image(tool_state: Arc<ToolState>, Image { url }: Image) -> Answer {
    let fetched = fetch(&tool_state, &url).await?;
    if !fetched.status.is_success() {
        return Err(Problem::new(format!(
            "{} answered with {}",
            fetched.url, fetched.status
        )));
    }
    image_reply(&fetched, format!("URL: {}\n", fetched.url))
}

fn image_reply(fetched: &Fetched, head: String) -> Answer {
    let Some(kind) = image_type(&fetched.body) else {
        return Err(Problem::new(format!(
            "{} is not a PNG, JPEG, GIF or WebP image (its content type is {}); use web_visit or download it with curl",
            fetched.url, fetched.media_type
        )));
    };
    if fetched.is_cut || fetched.body.len() > MAX_IMAGE {
        return Err(Problem::new(format!(
            "the image is larger than {MAX_IMAGE} bytes: download it with curl, make it smaller and read it with Read"
        )));
    }
    let caption = format!("{head}{kind}, {} bytes", fetched.body.len());
    Ok(Reply::text(caption).with_image(fetched.body.clone(), kind))
}

/// The type of an image by its first bytes, because content types are often wrong.
fn image_type(body: &[u8]) -> Option<&'static str> {
    match Kind::of(&body[..body.len().min(START)]) {
        Kind::Image(media_type) => Some(media_type),
        _ => None,
    }
}

fn looks_like_html(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// Decodes text: UTF-8, unless the header or the page declares a western single-byte encoding.
fn decoded(body: &[u8], media_type: &str) -> String {
    let beginning = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
    let declared = media_type
        .split_once("charset=")
        .or_else(|| beginning.split_once("charset="));
    let charset = declared.map(|(_, rest)| rest.trim_start_matches(['"', '\'', ' ']));
    let is_western = charset.is_some_and(|charset| {
        ["iso-8859-1", "latin1", "windows-1252", "us-ascii"]
            .iter()
            .any(|name| charset.starts_with(name))
    });
    if is_western && std::str::from_utf8(body).is_err() {
        return body.iter().map(|byte| char::from(*byte)).collect();
    }
    String::from_utf8_lossy(body).into_owned()
}
