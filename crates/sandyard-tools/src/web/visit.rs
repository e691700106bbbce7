//! Reading one page or one image.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use schemars::JsonSchema;
use serde::Deserialize;

use super::http;
use super::markdown::readable;
use crate::browser::address;
use crate::reply::{Answer, MAX_IMAGE, Problem, Reply, cut};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

/// Most bytes of one page.
const MAX_BYTES: usize = 5 * 1024 * 1024;
/// Most text of one page that is answered.
const MAX_TEXT: usize = 60_000;
/// For all of it.
const LIMIT: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Visit {
    /// The page's URL.
    url: String,
    /// What to look for on the page. It is carried into the answer; nothing here reads the page for you.
    #[serde(default)]
    prompt: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Image {
    /// The image's URL: PNG, JPEG, GIF or WebP, at most 5 MiB.
    url: String,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<Visit, _, _>(
            "web_visit",
            "Read a page",
            Effect::LooksOutside,
            "Fetches a page without a browser and answers with its text as markdown (no scripts are run; use \
                 browser_navigation for \
             pages that need them). No model reads it in between: `prompt` is only carried along. Text and JSON come \
             as they are, \
             images as images.",
            |workshop, args: Visit, call| async move {
                tokio::select! {
                    answer = visit(&workshop, &args.url, args.prompt.as_deref()) => answer,
                    () = call.cancelled.cancelled() => Err(Problem::new("the call was cancelled")),
                }
            },
        ),
        tool::<Image, _, _>(
            "read_remote_image",
            "Look at an image of the web",
            Effect::LooksOutside,
            "Fetches an image by its URL and shows it.",
            |workshop, args: Image, call| async move {
                tokio::select! {
                    answer = image(&workshop, &args.url) => answer,
                    () = call.cancelled.cancelled() => Err(Problem::new("the call was cancelled")),
                }
            },
        ),
    ]
}

/// What came back.
struct Fetched {
    url: Url,
    status: StatusCode,
    /// What it says to be, in lower case.
    media_type: String,
    body: Vec<u8>,
    is_cut: bool,
}

async fn fetch(workshop: &Workshop, url: &str) -> Result<Fetched, Problem> {
    let url = address::read(url, &workshop.workspace)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Problem::new(
            "only http and https addresses are fetched; use Read for files",
        ));
    }
    let work = async {
        let sent = http::client(&url).await?.get(url.clone()).send().await;
        let mut response = sent.map_err(|error| http::words(&error))?;
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
    let fetched: Result<_, Problem> = match tokio::time::timeout(LIMIT, work).await {
        Ok(fetched) => fetched,
        Err(_) => Err(Problem::new(format!(
            "it took longer than {} seconds",
            LIMIT.as_secs()
        ))),
    };
    fetched.map_err(|problem| Problem::new(format!("{url} cannot be fetched: {problem}")))
}

async fn visit(workshop: &Workshop, url: &str, prompt: Option<&str>) -> Answer {
    let fetched = fetch(workshop, url).await?;
    let mut head = format!("URL: {}\n", fetched.url);
    if !fetched.status.is_success() {
        head.push_str(&format!("HTTP status: {}\n", fetched.status));
    }
    if let Some(prompt) = prompt.filter(|prompt| !prompt.trim().is_empty()) {
        head.push_str(&format!("To look for: {}\n", cut(prompt.to_owned(), 2000)));
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
        return shown(&fetched, head).map(|reply| reply.with_failure(is_failure));
    }
    if kind == "application/pdf" || fetched.body.starts_with(b"%PDF-") {
        head.push_str("This is a PDF: download it (curl -o file.pdf URL) and open it with Read.");
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
            "This is {kind}, {} bytes, and not for reading: download it with curl.",
            fetched.body.len()
        ));
        return Ok(Reply::text(head).with_failure(is_failure));
    }
    let text = if is_html {
        // Megabytes of HTML take a while, and everybody else's calls would wait for it.
        let page = tokio::task::spawn_blocking(move || {
            readable(&decoded(&fetched.body, &fetched.media_type), &fetched.url)
        });
        let page = page
            .await
            .map_err(|_| Problem::new("the page cannot be read"))?;
        head.push_str(&format!("Title: {}\n", cut(page.title, 500)));
        page.text
    } else {
        decoded(&fetched.body, &fetched.media_type)
    };
    Ok(Reply::text(format!("{head}\n{}", cut(text, MAX_TEXT))).with_failure(is_failure))
}

async fn image(workshop: &Workshop, url: &str) -> Answer {
    let fetched = fetch(workshop, url).await?;
    if !fetched.status.is_success() {
        return Err(Problem::new(format!(
            "{} answered with {}",
            fetched.url, fetched.status
        )));
    }
    shown(&fetched, format!("URL: {}\n", fetched.url))
}

fn shown(fetched: &Fetched, head: String) -> Answer {
    let Some(kind) = image_type(&fetched.body) else {
        return Err(Problem::new(format!(
            "{} is not a PNG, JPEG, GIF or WebP image (it says to be {}); use web_visit or download it with curl",
            fetched.url, fetched.media_type
        )));
    };
    if fetched.is_cut || fetched.body.len() > MAX_IMAGE {
        return Err(Problem::new(format!(
            "the image is larger than {MAX_IMAGE} bytes: download it with curl, make it smaller and open it with Read"
        )));
    }
    let words = format!("{head}{kind}, {} bytes", fetched.body.len());
    Ok(Reply::text(words).with_image(fetched.body.clone(), kind))
}

/// What an image is by its first bytes: servers say all kinds of things.
fn image_type(body: &[u8]) -> Option<&'static str> {
    match body {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

fn looks_like_html(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// The text of bytes: UTF-8 unless the header or the page says that it is one of the old western encodings.
fn decoded(body: &[u8], media_type: &str) -> String {
    let beginning = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
    let said = media_type
        .split_once("charset=")
        .or_else(|| beginning.split_once("charset="));
    let charset = said.map(|(_, rest)| rest.trim_start_matches(['"', '\'', ' ']));
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
