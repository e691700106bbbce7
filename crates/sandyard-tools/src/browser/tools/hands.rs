//! Clicks, drags and keys.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::super::keys::Chord;
use super::super::mouse::{self, Point};
use super::super::notes::short;
use super::super::page::Page;
use super::super::typing;
use super::{rest_and_look, turn, unless_cancelled};
use crate::reply::{Answer, Problem};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

#[derive(Deserialize, JsonSchema)]
struct Click {
    /// How far from the left, in pixels of the screenshot. Needed unless there is a selector.
    #[serde(default)]
    coordinate_x: Option<f64>,
    /// How far from the top, in pixels of the screenshot. Needed unless there is a selector.
    #[serde(default)]
    coordinate_y: Option<f64>,
    /// Instead of coordinates: a CSS selector, whose first element is brought into view and clicked.
    #[serde(default)]
    selector: Option<String>,
    /// Clicks twice.
    #[serde(default)]
    double_click: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct Drag {
    /// Where it begins: from the left.
    coordinate_x_start: f64,
    /// Where it begins: from the top.
    coordinate_y_start: f64,
    /// Where it ends: from the left.
    coordinate_x_end: f64,
    /// Where it ends: from the top.
    coordinate_y_end: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Press {
    /// A key or several held together: Enter, Tab, ArrowDown, F5, a, Control+A, Shift+Tab.
    key: String,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<Click, _, _>(
            "browser_click",
            "Click",
            Effect::ChangesOutside,
            "Clicks at coordinates of the last screenshot, or on the first element of a CSS selector.",
            |workshop, args, call| unless_cancelled(call, click(workshop, args)),
        ),
        tool::<Drag, _, _>(
            "browser_drag",
            "Drag",
            Effect::ChangesOutside,
            "Presses the mouse button at one place, moves to another and lets go there. Drags elements too.",
            |workshop, args, call| unless_cancelled(call, drag(workshop, args)),
        ),
        tool::<Press, _, _>(
            "browser_press_key",
            "Press a key",
            Effect::ChangesOutside,
            "Presses a key, alone or with others held, where the focus is.",
            |workshop, args, call| unless_cancelled(call, press(workshop, args.key)),
        ),
    ]
}

async fn click(workshop: Arc<Workshop>, args: Click) -> Answer {
    let coordinates = match (args.coordinate_x, args.coordinate_y, &args.selector) {
        (Some(x), Some(y), _) => Some(Point::new(x, y)?),
        (None, None, Some(_)) => None,
        _ => {
            return Err(Problem::new(
                "say where to click: both coordinate_x and coordinate_y, or a selector",
            ));
        }
    };
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
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
    let often = if count == 2 { " twice" } else { "" };
    rest_and_look(&workshop, &turn, format!("Clicked{often} at {at}.")).await
}

async fn find(page: &Page<'_>, selector: &str) -> Result<Point, Problem> {
    let found = page
        .script(include_str!("../scripts/find.js"), &[json!(selector)])
        .await?;
    let selector = short(selector, 200);
    match found["problem"].as_str() {
        Some("bad") => Err(Problem::new(format!("{selector} is not a CSS selector"))),
        Some("hidden") => Err(Problem::new(format!(
            "the element of {selector} is not visible"
        ))),
        Some(_) => Err(Problem::new(format!(
            "nothing on the page matches {selector}; browser_view_interactive_elements shows what there is"
        ))),
        None => {
            let number = |key: &str| found[key].as_f64().unwrap_or(-1.0);
            Point::new(number("x"), number("y"))
        }
    }
}

async fn drag(workshop: Arc<Workshop>, args: Drag) -> Answer {
    let from = Point::new(args.coordinate_x_start, args.coordinate_y_start)?;
    let to = Point::new(args.coordinate_x_end, args.coordinate_y_end)?;
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
    mouse::drag(&page, from, to).await?;
    rest_and_look(&workshop, &turn, format!("Dragged from {from} to {to}.")).await
}

async fn press(workshop: Arc<Workshop>, key: String) -> Answer {
    let chord = Chord::read(&key)?;
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
    typing::chord(&page, &chord).await?;
    rest_and_look(&workshop, &turn, format!("Pressed {}.", key.trim())).await
}
