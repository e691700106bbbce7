//! Navigation, tabs and scrolling.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::mouse::{self, Point};
use super::super::observe::{Summary, observe};
use super::super::page::Navigation;
use super::super::state::HEIGHT;
use super::super::{BrowserGuard, address};
use super::{acquire, observe_after_load};
use crate::reply::{Answer, Problem};
use crate::tool::{Effect, NoArguments, Tool, cancellable};
use crate::tool_state::ToolState;

/// Minimum time of `browser_wait`.
const MIN_WAIT: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
struct NavigateArguments {
    /// URL to open, for example http://localhost:3000. file:// works for files in the workspace.
    url: String,
}

#[derive(Deserialize, JsonSchema)]
struct TabIndex {
    /// Number of the tab in the list of tabs; the first is 0.
    index: usize,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        cancellable("browser_navigation", Effect::ChangesExternal, open)
            .title("Open a page")
            .description("Open a URL in the browser and wait until it has loaded (at most 30 seconds). Like every browser tool it returns the URL, \
             title, scroll position and tabs, notes about what happened meanwhile, and a screenshot of 1280 by 800 pixels. Dialogs are \
             answered automatically: alerts, confirmations and leaving a page with OK, prompts with Cancel. Downloads go to `downloads` \
             in the workspace."),
        cancellable("browser_restart", Effect::ChangesExternal, restart)
            .title("Restart the browser")
            .description("End the browser with all tabs, cookies and sessions, start a new one and open a URL. Use it when the browser misbehaves."),
        cancellable("browser_open_new_tab", Effect::Adds, open_tab)
            .title("Open a tab")
            .description("Open an empty tab and switch to it."),
        cancellable("browser_switch_tab", Effect::Adds, switch)
            .title("Switch to a tab")
            .description("Switch to another tab by its number in the list of tabs."),
        cancellable("browser_wait", Effect::Reads, wait)
            .title("Wait for the page")
            .description("Wait one second, then until the page has loaded (at most 30 seconds), and show it."),
        cancellable("browser_scroll_down", Effect::Reads, scroll_down)
            .title("Scroll down")
            .description("Scroll down by most of a screen: the element in the middle of the page if it can scroll, otherwise the page."),
        cancellable("browser_scroll_up", Effect::Reads, scroll_up)
            .title("Scroll up")
            .description("Scroll up by most of a screen: the element in the middle of the page if it can scroll, otherwise the page."),
    ]
}

async fn open(tool_state: Arc<ToolState>, args: NavigateArguments) -> Answer {
    let url = address::parse(&args.url, &tool_state.workspace)?;
    let browser = acquire(&tool_state).await?;
    open_in(&tool_state, &browser, url.as_str()).await
}

async fn restart(tool_state: Arc<ToolState>, args: NavigateArguments) -> Answer {
    let url = address::parse(&args.url, &tool_state.workspace)?;
    tool_state.browser.end().await;
    let browser = acquire(&tool_state).await?;
    open_in(&tool_state, &browser, url.as_str()).await
}

async fn open_in(tool_state: &Arc<ToolState>, browser: &BrowserGuard, url: &str) -> Answer {
    let deadline = Instant::now() + browser.limits.navigation;
    let page = browser.running()?.page().await?;
    let (text, load_state) = match page.navigate(url, deadline).await? {
        Navigation::Started => ("Opened.".to_owned(), page.wait_for_load(deadline).await?),
        Navigation::TimedOut => (
            format!(
                "{url} did not answer within {} seconds; loading was cancelled. The previous page is still shown.",
                browser.limits.navigation.as_secs()
            ),
            page.wait_for_load(Instant::now() + browser.limits.load)
                .await?,
        ),
        Navigation::NotAPage => (
            format!(
                "{url} is not a page but a download or an empty response. The previous page is still shown."
            ),
            page.wait_for_load(Instant::now() + browser.limits.load)
                .await?,
        ),
        Navigation::Failed(error) => return Err(Problem::new(failure(url, &error))),
    };
    let summary = Summary {
        text,
        load_state: Some(load_state),
        details: None,
    };
    observe(browser, &tool_state.workspace, summary).await
}

fn failure(url: &str, error: &str) -> String {
    let advice = match error {
        "net::ERR_CONNECTION_REFUSED" => {
            "no program listens there: start the server first and check its output"
        }
        "net::ERR_NAME_NOT_RESOLVED" => {
            "the host name does not exist, or this sandbox may not reach it"
        }
        "net::ERR_FILE_NOT_FOUND" => "the file does not exist",
        "net::ERR_TOO_MANY_REDIRECTS" => "too many redirects",
        _ if error.starts_with("net::ERR_CERT") => "its certificate is not trusted in this sandbox",
        _ => "check the URL, and whether this sandbox may reach it",
    };
    format!("{url} cannot be opened ({error}): {advice}")
}

async fn open_tab(tool_state: Arc<ToolState>, _: NoArguments) -> Answer {
    let browser = acquire(&tool_state).await?;
    browser.running()?.open().await?;
    observe_after_load(&tool_state, &browser, "Opened a tab.").await
}

async fn switch(tool_state: Arc<ToolState>, TabIndex { index }: TabIndex) -> Answer {
    let browser = acquire(&tool_state).await?;
    let (tabs, _) = browser.running()?.state.tabs();
    let Some(tab) = tabs.get(index) else {
        return Err(Problem::new(format!(
            "tab {index} does not exist: there are {} tabs, the first is 0",
            tabs.len()
        )));
    };
    browser.running()?.select_tab(&tab.target).await?;
    observe_after_load(&tool_state, &browser, format!("Switched to tab {index}.")).await
}

async fn wait(tool_state: Arc<ToolState>, _: NoArguments) -> Answer {
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
    sleep(MIN_WAIT).await;
    let load_state = page
        .wait_for_load(Instant::now() + browser.limits.navigation)
        .await?;
    let summary = Summary {
        text: "Waited.".into(),
        load_state: Some(load_state),
        details: None,
    };
    observe(&browser, &tool_state.workspace, summary).await
}

async fn scroll_down(tool_state: Arc<ToolState>, _: NoArguments) -> Answer {
    scroll(tool_state, 1.0).await
}

async fn scroll_up(tool_state: Arc<ToolState>, _: NoArguments) -> Answer {
    scroll(tool_state, -1.0).await
}

async fn scroll(tool_state: Arc<ToolState>, direction: f64) -> Answer {
    let by = direction * f64::from(HEIGHT) * 0.8;
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
    let moved = page
        .script(include_str!("../scripts/scroll.js"), &[json!(by)])
        .await?;
    if moved != true {
        // A frame of another origin can be scrolled only with the mouse wheel.
        mouse::wheel(&page, Point::middle(), by).await?;
    }
    let text = if direction > 0.0 {
        "Scrolled down."
    } else {
        "Scrolled up."
    };
    observe_after_load(&tool_state, &browser, text).await
}
