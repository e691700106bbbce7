//! The text and the screenshot that every browser tool returns.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::BrowserGuard;
use super::address;
use super::notes::short;
use super::page::{LoadState, Page};
use super::pipe::Failure;
use super::running::Running;
use super::state::{HEIGHT, WIDTH};
use crate::reply::{Answer, Problem, Reply};
use crate::workspace::Workspace;

/// Maximum size of a screenshot, in bytes.
const MAX_SCREENSHOT: usize = 1024 * 1024;
/// Scales to try until a screenshot is small enough.
const SCALES: [f64; 3] = [1.0, 0.5, 0.25];

/// Time limit for a script in the page.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for a script in a page that is loading or busy.
const SHORT_SCRIPT_TIMEOUT: Duration = Duration::from_secs(1);

/// What a tool did.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// The first line of the reply.
    pub(super) text: String,
    /// Whether the page has loaded.
    pub(super) load_state: Option<LoadState>,
    /// More text, after the description of the page.
    pub(super) details: Option<String>,
}

/// How often to try again with another tab when a page closes meanwhile.
const MAX_CLOSED: usize = 3;

/// Builds the reply of a tool: what it did, the state of the page, and a screenshot.
pub(super) async fn observe(
    browser: &BrowserGuard,
    workspace: &Workspace,
    summary: Summary,
) -> Answer {
    let running = browser.running()?;
    let mut closed = 0;
    let observation = loop {
        let is_busy = matches!(summary.load_state, Some(LoadState::Busy));
        match observe_page(browser, running, workspace, is_busy).await {
            Err(Failure::Closed) if closed < MAX_CLOSED => closed += 1,
            other => break other?,
        }
    };
    let mut lines = vec![summary.text];
    match summary.load_state {
        Some(LoadState::StillLoading) => {
            lines.push("The page is still loading. browser_wait waits for it.".into())
        }
        Some(LoadState::Busy) => {
            lines.push("The page's scripts are busy and it does not respond.".into())
        }
        Some(LoadState::Loaded) | None => {}
    }
    lines.push(observation.description);
    lines.push(tabs(running).await?);
    let notes = running.state.take_notes();
    lines.extend(notes.iter().map(|note| format!("Note: {note}.")));
    lines.extend(summary.details);
    let (data, scale) = match observation.screenshot {
        Ok(screenshot) => screenshot,
        Err(why) => {
            lines.push(format!("No screenshot: {why}."));
            return Ok(Reply::text(lines.join("\n")));
        }
    };
    if scale < 1.0 {
        lines.push(format!(
            "The screenshot is scaled by {scale}: divide its coordinates by that."
        ));
    }
    Ok(Reply::text(lines.join("\n")).with_image(data, "image/png"))
}

/// The state of the current page.
struct Observation {
    /// URL, title and scroll position.
    description: String,
    /// A PNG and its scale, or why there is none.
    screenshot: Result<(Vec<u8>, f64), String>,
}

async fn observe_page(
    browser: &BrowserGuard,
    running: &Running,
    workspace: &Workspace,
    is_busy: bool,
) -> Result<Observation, Failure> {
    let page = running.page().await?;
    if let Some(note) = forbidden_page(&page, workspace) {
        // A link led to a URL that tools must not open.
        running.state.note(note);
        page.navigate("about:blank", Instant::now() + browser.limits.load)
            .await?;
    }
    let is_loading = page.tab()?.is_loading;
    // A page that waits for another document has a screenshot, but runs no scripts. A busy page was waited for already.
    let limit = if is_loading || is_busy {
        SHORT_SCRIPT_TIMEOUT
    } else {
        SCRIPT_TIMEOUT
    };
    let request = page.script(include_str!("scripts/about.js"), &[]);
    let about = match timeout(limit, request)
        .await
        .unwrap_or(Err(Failure::TimedOut))
    {
        Ok(about) => Some(about),
        Err(Failure::TimedOut | Failure::Refused(_)) => None,
        Err(failure) => return Err(failure),
    };
    let screenshot = match &about {
        None if !is_loading => Err(Failure::TimedOut),
        _ => take_screenshot(&page).await,
    };
    let screenshot = match screenshot {
        Ok(screenshot) => Ok(screenshot),
        Err(Failure::Refused(why)) => Err(why),
        Err(Failure::TimedOut) => Err(Problem::from(Failure::TimedOut).to_string()),
        Err(failure) => return Err(failure),
    };
    Ok(Observation {
        description: describe(&page, about.as_ref())?,
        screenshot,
    })
}

/// The note about a page that tools must not open, if the current page is one.
fn forbidden_page(page: &Page<'_>, workspace: &Workspace) -> Option<String> {
    let tab = page.tab().ok()?;
    let url = Url::parse(&tab.url).ok()?;
    // The browser's own error page.
    if url.scheme() == "chrome-error" {
        return None;
    }
    let problem = address::check(&url, workspace).err()?;
    Some(format!(
        "the page {} was left: {problem}",
        short(&tab.url, 300)
    ))
}

fn describe(page: &Page<'_>, about: Option<&Value>) -> Result<String, Failure> {
    let tab = page.tab()?;
    let Some(about) = about else {
        return Ok(format!(
            "URL: {}\nTitle: {}",
            short(&tab.url, 1000),
            short(&tab.title, 200)
        ));
    };
    let text = |key: &str| about[key].as_str().unwrap_or_default();
    let number = |key: &str| about[key].as_i64().unwrap_or_default();
    let mut description = format!(
        "URL: {}\nTitle: {}",
        short(text("url"), 1000),
        short(text("title"), 200)
    );
    if number("status") >= 400 {
        description.push_str(&format!("\nHTTP status: {}", number("status")));
    }
    let below = (number("height") - number("down") - i64::from(HEIGHT)).max(0);
    description.push_str(&format!(
        "\nScroll: {} pixels above and {below} below the visible part ({WIDTH} by {HEIGHT})",
        number("down")
    ));
    if number("width") > i64::from(WIDTH) {
        description.push_str(&format!("; the page is {} pixels wide", number("width")));
    }
    Ok(description)
}

async fn tabs(running: &Running) -> Result<String, Failure> {
    // Events report every URL, but not every title.
    let filter = json!({ "filter": [{ "type": "page" }, { "exclude": true }] });
    let targets = running.pipe.send(None, "Target.getTargets", filter).await?;
    let empty = Vec::new();
    let targets = targets["targetInfos"].as_array().unwrap_or(&empty);
    let (tabs, current) = running.state.tabs();
    let mut lines = vec!["Tabs:".to_owned()];
    for (index, tab) in tabs.iter().enumerate() {
        let mark = if Some(index) == current {
            " (current)"
        } else {
            ""
        };
        let target = targets
            .iter()
            .find(|target| target["targetId"] == *tab.target);
        let title = target
            .and_then(|target| target["title"].as_str())
            .unwrap_or(&tab.title);
        let (title, url) = (short(title, 80), short(&tab.url, 200));
        lines.push(format!("  [{index}]{mark} {title} {url}"));
    }
    Ok(lines.join("\n"))
}

/// A PNG of the visible part, and its scale.
async fn take_screenshot(page: &Page<'_>) -> Result<(Vec<u8>, f64), Failure> {
    for scale in SCALES {
        let mut options = json!({ "format": "png" });
        if scale < 1.0 {
            let offset = page.script(SCROLL_OFFSET, &[]).await?;
            options["clip"] = json!({
                "x": offset[0], "y": offset[1], "width": WIDTH, "height": HEIGHT, "scale": scale,
            });
        }
        let answer = page.send("Page.captureScreenshot", options).await?;
        let data = STANDARD
            .decode(answer["data"].as_str().unwrap_or_default())
            .map_err(|_| Failure::Refused("the browser sent no screenshot".into()))?;
        if data.len() <= MAX_SCREENSHOT || scale <= 0.25 {
            return Ok((data, scale));
        }
    }
    Err(Failure::Refused("the screenshot is too large".into()))
}

const SCROLL_OFFSET: &str =
    "function() { return [visualViewport.pageLeft, visualViewport.pageTop]; }";
