//! Going somewhere: addresses, tabs, up and down.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::look::{Said, look};
use super::super::mouse::{self, Point};
use super::super::page::Arrival;
use super::super::state::HEIGHT;
use super::super::{Turn, address};
use super::{rest_and_look, turn, unless_cancelled};
use crate::reply::{Answer, Problem};
use crate::tool::{Effect, Nothing, Tool, tool};
use crate::workshop::Workshop;

/// How long `browser_wait` waits at least.
const WAIT: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
struct Address {
    /// The URL to open, like http://localhost:3000. file:// works inside of the workspace.
    url: String,
}

#[derive(Deserialize, JsonSchema)]
struct TabIndex {
    /// The number of the tab, as the list of tabs shows it. The first is 0.
    index: usize,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<Address, _, _>(
            "browser_navigation",
            "Open a page",
            Effect::ChangesOutside,
            "Opens a URL in the browser and waits until it is loaded (30 seconds at most). Like every browser tool it \
                 answers with \
             the page's URL, title, scroll position and tabs, what came up meanwhile, and a screenshot of 1280 by 800 \
             pixels. Dialogs \
             of pages are answered by themselves: alerts, questions and leaving a page with OK, questions for a text \
             with Cancel. \
             Files a page gives go to `downloads` in the workspace.",
            |workshop, args, call| unless_cancelled(call, open(workshop, args.url)),
        ),
        tool::<Address, _, _>(
            "browser_restart",
            "Restart the browser",
            Effect::ChangesOutside,
            "Ends the browser with all its tabs, cookies and sessions, starts a new one and opens a URL in it. For \
                 when it misbehaves.",
            |workshop, args, call| unless_cancelled(call, restart(workshop, args.url)),
        ),
        tool::<Nothing, _, _>(
            "browser_open_new_tab",
            "Open a tab",
            Effect::Adds,
            "Opens an empty tab, which is looked at from now on.",
            |workshop, _, call| unless_cancelled(call, open_tab(workshop)),
        ),
        tool::<TabIndex, _, _>(
            "browser_switch_tab",
            "Switch to a tab",
            Effect::Adds,
            "Looks at another tab, by its number in the list of tabs.",
            |workshop, args, call| unless_cancelled(call, switch(workshop, args.index)),
        ),
        tool::<Nothing, _, _>(
            "browser_wait",
            "Wait for the page",
            Effect::Looks,
            "Waits a second, and as long as the page is loading (30 seconds at most), then shows it.",
            |workshop, _, call| unless_cancelled(call, wait(workshop)),
        ),
        tool::<Nothing, _, _>(
            "browser_scroll_down",
            "Scroll down",
            Effect::Looks,
            "Scrolls down by most of what is seen: what is in the middle of the page, or else the page.",
            |workshop, _, call| unless_cancelled(call, scroll(workshop, 1.0)),
        ),
        tool::<Nothing, _, _>(
            "browser_scroll_up",
            "Scroll up",
            Effect::Looks,
            "Scrolls up by most of what is seen: what is in the middle of the page, or else the page.",
            |workshop, _, call| unless_cancelled(call, scroll(workshop, -1.0)),
        ),
    ]
}

async fn open(workshop: Arc<Workshop>, url: String) -> Answer {
    let url = address::read(&url, &workshop.workspace)?;
    let turn = turn(&workshop).await?;
    open_in(&workshop, &turn, url.as_str()).await
}

async fn restart(workshop: Arc<Workshop>, url: String) -> Answer {
    let url = address::read(&url, &workshop.workspace)?;
    workshop.browser.end().await;
    let turn = turn(&workshop).await?;
    open_in(&workshop, &turn, url.as_str()).await
}

async fn open_in(workshop: &Arc<Workshop>, turn: &Turn, url: &str) -> Answer {
    let deadline = Instant::now() + turn.limits.navigation;
    let page = turn.running()?.page().await?;
    let (words, rest) = match page.go(url, deadline).await? {
        Arrival::Begun => ("Opened.".to_owned(), page.rest(deadline).await?),
        Arrival::Nothing => (
            format!(
                "{url} did not answer within {} seconds and was given up. The page before is still shown.",
                turn.limits.navigation.as_secs()
            ),
            page.rest(Instant::now() + turn.limits.rest).await?,
        ),
        Arrival::NoPage => (
            format!(
                "{url} is not a page: it is a file to download, or nothing at all. The page before is still shown."
            ),
            page.rest(Instant::now() + turn.limits.rest).await?,
        ),
        Arrival::Failed(error) => return Err(Problem::new(failure(url, &error))),
    };
    let said = Said {
        words,
        rest: Some(rest),
        more: None,
    };
    look(turn, &workshop.workspace, said).await
}

fn failure(url: &str, error: &str) -> String {
    let advice = match error {
        "net::ERR_CONNECTION_REFUSED" => {
            "nothing listens there: start the server first, and look at its output"
        }
        "net::ERR_NAME_NOT_RESOLVED" => "there is no such name, or this sandbox may not reach it",
        "net::ERR_FILE_NOT_FOUND" => "there is no such file",
        "net::ERR_TOO_MANY_REDIRECTS" => "it redirects in circles",
        _ if error.starts_with("net::ERR_CERT") => "its certificate is not trusted in this sandbox",
        _ => "check the address, and whether this sandbox may reach it",
    };
    format!("{url} cannot be opened ({error}): {advice}")
}

async fn open_tab(workshop: Arc<Workshop>) -> Answer {
    let turn = turn(&workshop).await?;
    turn.running()?.open().await?;
    rest_and_look(&workshop, &turn, "Opened a tab.").await
}

async fn switch(workshop: Arc<Workshop>, index: usize) -> Answer {
    let turn = turn(&workshop).await?;
    let (tabs, _) = turn.running()?.state.tabs();
    let Some(tab) = tabs.get(index) else {
        return Err(Problem::new(format!(
            "there is no tab {index}: there are {}, the first is 0",
            tabs.len()
        )));
    };
    turn.running()?.look_at(&tab.target).await?;
    rest_and_look(&workshop, &turn, format!("Switched to tab {index}.")).await
}

async fn wait(workshop: Arc<Workshop>) -> Answer {
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
    sleep(WAIT).await;
    let rest = page.rest(Instant::now() + turn.limits.navigation).await?;
    let said = Said {
        words: "Waited.".into(),
        rest: Some(rest),
        more: None,
    };
    look(&turn, &workshop.workspace, said).await
}

async fn scroll(workshop: Arc<Workshop>, direction: f64) -> Answer {
    let by = direction * f64::from(HEIGHT) * 0.8;
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
    let moved = page
        .script(include_str!("../scripts/scroll.js"), &[json!(by)])
        .await?;
    if moved != true {
        // A frame of another origin only listens to the wheel.
        mouse::wheel(&page, Point::middle(), by).await?;
    }
    let words = if direction > 0.0 {
        "Scrolled down."
    } else {
        "Scrolled up."
    };
    rest_and_look(&workshop, &turn, words).await
}
