//! `browser_click`, `browser_drag` and `browser_press_key`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::super::keys::Chord;
use super::super::mouse::{self, Point};
use super::super::notes::short;
use super::super::page::Page;
use super::super::typing;
use super::{acquire, observe_after_load};
use crate::reply::{Answer, Problem, Result};
use crate::tool::{Effect, Tool, cancellable};
use crate::tool_state::ToolState;

#[derive(Deserialize, JsonSchema)]
struct Click {
    /// Distance from the left in pixels of the screenshot. Required unless selector is given.
    coordinate_x: Option<f64>,
    /// Distance from the top in pixels of the screenshot. Required unless selector is given.
    coordinate_y: Option<f64>,
    /// CSS selector, instead of coordinates. Its first element is scrolled into view and clicked.
    selector: Option<String>,
    /// Double-click (default false).
    double_click: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct Drag {
    /// Start: distance from the left in pixels of the screenshot.
    coordinate_x_start: f64,
    /// Start: distance from the top in pixels of the screenshot.
    coordinate_y_start: f64,
    /// End: distance from the left in pixels of the screenshot.
    coordinate_x_end: f64,
    /// End: distance from the top in pixels of the screenshot.
    coordinate_y_end: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Press {
    /// Key or key combination, for example Enter, Tab, ArrowDown, F5, a, Control+A, Shift+Tab.
    key: String,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        cancellable("browser_click", Effect::ChangesExternal, click)
            .title("Click")
            .description("Click at coordinates of the last screenshot, or on the first element that matches a CSS selector."),
        cancellable("browser_drag", Effect::ChangesExternal, drag)
            .title("Drag")
            .description("Press the mouse button at one position, move to another and release it. Also drags draggable elements."),
        cancellable("browser_press_key", Effect::ChangesExternal, press)
            .title("Press a key")
            .description("Press a key or key combination in the focused element."),
    ]
}

async fn click(tool_state: Arc<ToolState>, args: Click) -> Answer {
    let coordinates = match (args.coordinate_x, args.coordinate_y, &args.selector) {
        (Some(x), Some(y), _) => Some(Point::new(x, y)?),
        (None, None, Some(_)) => None,
        _ => {
            return Err(Problem::new(
                "give the position to click: both coordinate_x and coordinate_y, or selector",
            ));
        }
    };
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
    let at = match (coordinates, &args.selector) {
        (Some(at), _) => at,
        (None, selector) => find(&page, selector.as_deref().unwrap_or_default()).await?,
    };
    let count = if args.double_click == Some(true) {
        2
    } else {
        1
    };
    mouse::click(&page, at, count).await?;
    let suffix = if count == 2 { " twice" } else { "" };
    observe_after_load(&tool_state, &browser, format!("Clicked{suffix} at {at}.")).await
}

async fn find(page: &Page<'_>, selector: &str) -> Result<Point> {
    let found = page
        .script(include_str!("../scripts/find.js"), &[json!(selector)])
        .await?;
    let selector = short(selector, 200);
    match found["problem"].as_str() {
        Some("bad") => Err(Problem::new(format!(
            "{selector} is not a valid CSS selector"
        ))),
        Some("hidden") => Err(Problem::new(format!(
            "the element that matches {selector} is not visible"
        ))),
        Some(_) => Err(Problem::new(format!(
            "no element matches {selector}; browser_view_interactive_elements lists the elements"
        ))),
        None => {
            let number = |key: &str| found[key].as_f64().unwrap_or(-1.0);
            Point::new(number("x"), number("y"))
        }
    }
}

async fn drag(tool_state: Arc<ToolState>, args: Drag) -> Answer {
    let from = Point::new(args.coordinate_x_start, args.coordinate_y_start)?;
    let to = Point::new(args.coordinate_x_end, args.coordinate_y_end)?;
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
    mouse::drag(&page, from, to).await?;
    observe_after_load(
        &tool_state,
        &browser,
        format!("Dragged from {from} to {to}."),
    )
    .await
}

async fn press(tool_state: Arc<ToolState>, Press { key }: Press) -> Answer {
    let chord = Chord::parse(&key)?;
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
    typing::chord(&page, &chord).await?;
    observe_after_load(&tool_state, &browser, format!("Pressed {}.", key.trim())).await
}
