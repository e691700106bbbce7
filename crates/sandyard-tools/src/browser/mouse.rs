//! Mouse input.

use std::fmt;

use serde_json::{Value, json};

use super::page::Page;
use super::pipe::Failure;
use super::state::{HEIGHT, WIDTH};
use crate::reply::{Problem, Result};

/// Number of mouse moves of a drag, because pages expect several.
const STEPS: u32 = 12;

/// A position in the visible part of the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    x: f64,
    y: f64,
}

impl Point {
    /// The centre of the page.
    pub(super) fn middle() -> Self {
        Self {
            x: f64::from(WIDTH) / 2.0,
            y: f64::from(HEIGHT) / 2.0,
        }
    }

    /// Checks coordinates; 0 is the first pixel.
    pub(super) fn new(x: f64, y: f64) -> Result<Self> {
        let is_in = |value: f64, size: u32| value >= 0.0 && value < f64::from(size);
        if is_in(x, WIDTH) && is_in(y, HEIGHT) {
            return Ok(Self { x, y });
        }
        Err(Problem::new(format!(
            "({x}, {y}) is not in the visible part of the page, which is {WIDTH} by {HEIGHT} pixels: scroll first, and use coordinates of \
             the last screenshot"
        )))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.x, self.y)
    }
}

/// Clicks, once or twice.
pub(super) async fn click(page: &Page<'_>, at: Point, count: u32) -> Result<(), Failure> {
    event(page, "mouseMoved", at, json!({})).await?;
    let button = PressedButton { page, at };
    for number in 1..=count {
        let more = json!({ "button": "left", "buttons": 1, "clickCount": number });
        event(page, "mousePressed", at, more).await?;
        let more = json!({ "button": "left", "buttons": 0, "clickCount": number });
        event(page, "mouseReleased", at, more).await?;
    }
    button.released();
    Ok(())
}

/// Turns the mouse wheel by a number of pixels.
pub(super) async fn wheel(page: &Page<'_>, at: Point, by: f64) -> Result<(), Failure> {
    event(page, "mouseWheel", at, json!({ "deltaX": 0, "deltaY": by })).await
}

/// Presses the button at one position and releases it at another. Drags the element if it is draggable.
pub(super) async fn drag(page: &Page<'_>, from: Point, to: Point) -> Result<(), Failure> {
    // Without a desktop, drag and drop works only if we intercept the drag events.
    page.running.state.take_drag();
    page.send("Input.setInterceptDrags", json!({ "enabled": true }))
        .await?;
    let button = PressedButton { page, at: to };
    event(page, "mouseMoved", from, json!({})).await?;
    let pressed = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
    event(page, "mousePressed", from, pressed).await?;
    let mut carried = None;
    for step in 1..=STEPS {
        let part = f64::from(step) / f64::from(STEPS);
        let at = Point {
            x: from.x + (to.x - from.x) * part,
            y: from.y + (to.y - from.y) * part,
        };
        match &carried {
            None => {
                event(
                    page,
                    "mouseMoved",
                    at,
                    json!({ "button": "left", "buttons": 1 }),
                )
                .await?
            }
            Some(data) => drag_event(page, "dragOver", at, data).await?,
        }
        if carried.is_none() {
            carried = page.running.state.take_drag();
            if let Some(data) = &carried {
                drag_event(page, "dragEnter", at, data).await?;
            }
        }
    }
    if let Some(data) = &carried {
        drag_event(page, "dragOver", to, data).await?;
        drag_event(page, "drop", to, data).await?;
    }
    let released = json!({ "button": "left", "buttons": 0, "clickCount": 1 });
    event(page, "mouseReleased", to, released).await?;
    button.released();
    page.act("Input.setInterceptDrags", json!({ "enabled": false }))
        .await
}

async fn event(page: &Page<'_>, kind: &str, at: Point, more: Value) -> Result<(), Failure> {
    page.act("Input.dispatchMouseEvent", merged(kind, at, more))
        .await
}

async fn drag_event(page: &Page<'_>, kind: &str, at: Point, data: &Value) -> Result<(), Failure> {
    let event = merged(kind, at, json!({ "data": data }));
    page.act("Input.dispatchDragEvent", event).await
}

fn merged(kind: &str, at: Point, mut more: Value) -> Value {
    more["type"] = kind.into();
    more["x"] = at.x.into();
    more["y"] = at.y.into();
    more
}

/// A pressed mouse button. Dropping it releases the button, even if the call is cancelled.
struct PressedButton<'a> {
    page: &'a Page<'a>,
    at: Point,
}

impl PressedButton<'_> {
    fn released(self) {
        std::mem::forget(self);
    }
}

impl Drop for PressedButton<'_> {
    fn drop(&mut self) {
        let more = json!({ "button": "left", "buttons": 0, "clickCount": 1 });
        let released = merged("mouseReleased", self.at, more);
        self.page.notify("Input.dispatchMouseEvent", released);
        self.page
            .notify("Input.setInterceptDrags", json!({ "enabled": false }));
    }
}
