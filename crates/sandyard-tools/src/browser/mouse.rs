//! The mouse.

use std::fmt;

use serde_json::{Value, json};

use super::page::Page;
use super::pipe::Failure;
use super::state::{HEIGHT, WIDTH};
use crate::reply::Problem;

/// Steps of a drag. Pages look at the way, not only at its ends.
const STEPS: u32 = 12;

/// A place in the page as it is seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    x: f64,
    y: f64,
}

impl Point {
    /// The middle of the page.
    pub(super) fn middle() -> Self {
        Self {
            x: f64::from(WIDTH) / 2.0,
            y: f64::from(HEIGHT) / 2.0,
        }
    }

    /// From coordinates somebody gave. 0 is the first pixel.
    pub(super) fn new(x: f64, y: f64) -> Result<Self, Problem> {
        let is_in = |value: f64, size: u32| value >= 0.0 && value < f64::from(size);
        if is_in(x, WIDTH) && is_in(y, HEIGHT) {
            return Ok(Self { x, y });
        }
        Err(Problem::new(format!(
            "({x}, {y}) is not on the page as it is seen, which is {WIDTH} by {HEIGHT} pixels; scroll first, and take \
             coordinates from the last screenshot"
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
    let hold = Hold { page, at };
    for number in 1..=count {
        let more = json!({ "button": "left", "buttons": 1, "clickCount": number });
        event(page, "mousePressed", at, more).await?;
        let more = json!({ "button": "left", "buttons": 0, "clickCount": number });
        event(page, "mouseReleased", at, more).await?;
    }
    hold.done();
    Ok(())
}

/// Turns the wheel by so many pixels.
pub(super) async fn wheel(page: &Page<'_>, at: Point, by: f64) -> Result<(), Failure> {
    event(page, "mouseWheel", at, json!({ "deltaX": 0, "deltaY": by })).await
}

/// Presses the button at one place and lets it go at another. What the page wants to be dragged comes along.
pub(super) async fn drag(page: &Page<'_>, from: Point, to: Point) -> Result<(), Failure> {
    // The browser would hand what is dragged to the desktop, which there is none of: it is handed to us instead.
    page.running.state.take_drag();
    page.send("Input.setInterceptDrags", json!({ "enabled": true }))
        .await?;
    let hold = Hold { page, at: to };
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
    hold.done();
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

/// The button while it is held: let go of even if nobody waits for that any more.
struct Hold<'a> {
    page: &'a Page<'a>,
    at: Point,
}

impl Hold<'_> {
    fn done(self) {
        std::mem::forget(self);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let more = json!({ "button": "left", "buttons": 0, "clickCount": 1 });
        let released = merged("mouseReleased", self.at, more);
        self.page.tell("Input.dispatchMouseEvent", released);
        self.page
            .tell("Input.setInterceptDrags", json!({ "enabled": false }));
    }
}
