//! The words and the picture every tool answers with.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::Turn;
use super::address;
use super::notes::short;
use super::page::{Page, Rest};
use super::pipe::Failure;
use super::running::Running;
use super::state::{HEIGHT, WIDTH};
use crate::reply::{Answer, Problem, Reply};
use crate::workspace::Workspace;

/// Largest picture. More pixels tell a model nothing and cost it much.
const MAX_PICTURE: usize = 1024 * 1024;
/// How much smaller pictures get until they are small enough.
const SCALES: [f64; 3] = [1.0, 0.5, 0.25];

/// How long a page may take to tell about itself. Machines may be busy.
const LONG: Duration = Duration::from_secs(30);
/// The same for one that is about to be left.
const SHORT: Duration = Duration::from_secs(1);

/// What has been done, said first.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// In words.
    pub(super) words: String,
    /// How the page was found to be.
    pub(super) rest: Option<Rest>,
    /// More text, after what is told about the page.
    pub(super) more: Option<String>,
}

/// How often a page that closes while it is looked at makes way for the one behind it.
const MAX_CLOSED: usize = 3;

/// What is to be seen, with what was done before.
pub(super) async fn look(turn: &Turn, workspace: &Workspace, said: Said) -> Answer {
    let running = turn.running()?;
    let mut closed = 0;
    let glance = loop {
        let is_busy = matches!(said.rest, Some(Rest::Busy));
        match glance(turn, running, workspace, is_busy).await {
            Err(Failure::Closed) if closed < MAX_CLOSED => closed += 1,
            other => break other?,
        }
    };
    let mut lines = vec![said.words];
    match said.rest {
        Some(Rest::StillLoading) => lines.push(
            "The page is still loading: this is what there is now. browser_wait waits for more of it.".into(),
        ),
        Some(Rest::Busy) => lines.push("The page's scripts are busy and it does not respond.".into()),
        Some(Rest::Loaded) | None => {}
    }
    lines.push(glance.place);
    lines.push(tabs(running).await?);
    let notes = running.state.take_notes();
    lines.extend(notes.iter().map(|note| format!("Note: {note}.")));
    lines.extend(said.more);
    let picture = match glance.picture {
        Ok(picture) => picture,
        Err(why) => {
            lines.push(format!("There is no screenshot: {why}."));
            return Ok(Reply::text(lines.join("\n")));
        }
    };
    let (data, scale) = picture;
    if scale < 1.0 {
        lines.push(format!(
            "The screenshot is at {scale} of its size: divide its coordinates by that."
        ));
    }
    Ok(Reply::text(lines.join("\n")).with_image(data, "image/png"))
}

/// One look at the current page.
struct Glance {
    /// Where it is, in words.
    place: String,
    /// A PNG and its scale, or why there is none.
    picture: Result<(Vec<u8>, f64), String>,
}

async fn glance(
    turn: &Turn,
    running: &Running,
    workspace: &Workspace,
    is_busy: bool,
) -> Result<Glance, Failure> {
    let page = running.page().await?;
    if let Some(words) = bad_place(&page, workspace) {
        // Links lead where nobody may type an address of.
        running.state.note(words);
        page.go("about:blank", Instant::now() + turn.limits.rest)
            .await?;
    }
    let is_loading = page.tab()?.is_loading;
    // A page that waits for another document can be seen, but not asked. One that was found busy has been waited for.
    let patience = if is_loading || is_busy { SHORT } else { LONG };
    let asked = page.script(include_str!("scripts/about.js"), &[]);
    let about = match timeout(patience, asked)
        .await
        .unwrap_or(Err(Failure::Silent))
    {
        Ok(about) => Some(about),
        Err(Failure::Silent | Failure::Refused(_)) => None,
        Err(failure) => return Err(failure),
    };
    let picture = match &about {
        None if !is_loading => Err(Failure::Silent),
        _ => picture(&page).await,
    };
    let picture = match picture {
        Ok(picture) => Ok(picture),
        Err(Failure::Refused(why)) => Err(why),
        Err(Failure::Silent) => Err(Problem::from(Failure::Silent).to_string()),
        Err(failure) => return Err(failure),
    };
    Ok(Glance {
        place: place(&page, about.as_ref())?,
        picture,
    })
}

fn bad_place(page: &Page<'_>, workspace: &Workspace) -> Option<String> {
    let tab = page.tab().ok()?;
    let url = Url::parse(&tab.url).ok()?;
    // The browser's own page for what could not be reached.
    if url.scheme() == "chrome-error" {
        return None;
    }
    let problem = address::check(&url, workspace).err()?;
    Some(format!(
        "the page {} was left: {problem}",
        short(&tab.url, 300)
    ))
}

fn place(page: &Page<'_>, about: Option<&Value>) -> Result<String, Failure> {
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
    let mut place = format!(
        "URL: {}\nTitle: {}",
        short(text("url"), 1000),
        short(text("title"), 200)
    );
    if number("status") >= 400 {
        place.push_str(&format!("\nHTTP status: {}", number("status")));
    }
    let below = (number("height") - number("down") - i64::from(HEIGHT)).max(0);
    place.push_str(&format!(
        "\nScroll: {} pixels above and {below} below what is seen ({WIDTH} by {HEIGHT})",
        number("down")
    ));
    if number("width") > i64::from(WIDTH) {
        place.push_str(&format!("; the page is {} pixels wide", number("width")));
    }
    Ok(place)
}

async fn tabs(running: &Running) -> Result<String, Failure> {
    // Events tell of addresses, but not of every title.
    let filter = json!({ "filter": [{ "type": "page" }, { "exclude": true }] });
    let known = running.pipe.send(None, "Target.getTargets", filter).await?;
    let empty = Vec::new();
    let known = known["targetInfos"].as_array().unwrap_or(&empty);
    let (tabs, current) = running.state.tabs();
    let mut lines = vec!["Tabs:".to_owned()];
    for (index, tab) in tabs.iter().enumerate() {
        let mark = if Some(index) == current {
            " (this one)"
        } else {
            ""
        };
        let told = known.iter().find(|told| told["targetId"] == *tab.target);
        let title = told
            .and_then(|told| told["title"].as_str())
            .unwrap_or(&tab.title);
        let (title, url) = (short(title, 80), short(&tab.url, 200));
        lines.push(format!("  [{index}]{mark} {title} {url}"));
    }
    Ok(lines.join("\n"))
}

/// A PNG of what is seen, and its scale.
async fn picture(page: &Page<'_>) -> Result<(Vec<u8>, f64), Failure> {
    for scale in SCALES {
        let mut how = json!({ "format": "png" });
        if scale < 1.0 {
            let place = page.script(PLACE, &[]).await?;
            how["clip"] = json!({
                "x": place[0], "y": place[1], "width": WIDTH, "height": HEIGHT, "scale": scale,
            });
        }
        let answer = page.send("Page.captureScreenshot", how).await?;
        let data = STANDARD
            .decode(answer["data"].as_str().unwrap_or_default())
            .map_err(|_| Failure::Refused("the browser sent no picture".into()))?;
        if data.len() <= MAX_PICTURE || scale <= 0.25 {
            return Ok((data, scale));
        }
    }
    Err(Failure::Refused("the picture is too large".into()))
}

const PLACE: &str = "function() { return [visualViewport.pageLeft, visualViewport.pageTop]; }";
