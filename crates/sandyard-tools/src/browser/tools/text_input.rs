//! `browser_enter_text` and `browser_enter_multi_texts`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::mouse::{self, Point};
use super::super::page::Page;
use super::super::typing;
use super::{acquire, observe_after_load};
use crate::reply::{Answer, Problem, Result};
use crate::tool::{Effect, Tool, cancellable};
use crate::tool_state::ToolState;

/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 1024 * 1024;
/// Maximum number of texts in a call.
const MAX_TEXTS: usize = 50;

#[derive(Deserialize, JsonSchema)]
struct EnterText {
    /// Text to type.
    text: String,
    /// Position of the field: distance from the left in pixels of the screenshot (default: the focused field).
    coordinate_x: Option<f64>,
    /// Position of the field: distance from the top in pixels of the screenshot.
    coordinate_y: Option<f64>,
    /// Press Enter afterwards (default false).
    press_enter: Option<bool>,
    /// Clear the field first (default false: append the text).
    #[serde(rename = "override")]
    replaces: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct EnterTexts {
    /// Texts with their fields, typed in this order.
    enter_texts: Vec<EnterText>,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        cancellable("browser_enter_text", Effect::ChangesExternal, enter)
            .title("Enter text")
            .description("Click a field and type text into it."),
        cancellable(
            "browser_enter_multi_texts",
            Effect::ChangesExternal,
            enter_all,
        )
        .title("Enter several texts")
        .description("Type text into several fields, for example of a form."),
    ]
}

async fn enter(tool_state: Arc<ToolState>, text: EnterText) -> Answer {
    let enter_texts = vec![text];
    enter_all(tool_state, EnterTexts { enter_texts }).await
}

async fn enter_all(tool_state: Arc<ToolState>, EnterTexts { enter_texts }: EnterTexts) -> Answer {
    if enter_texts.is_empty() || enter_texts.len() > MAX_TEXTS {
        return Err(Problem::new(format!("give 1 to {MAX_TEXTS} texts")));
    }
    // Check everything before typing anything.
    let positions = enter_texts
        .iter()
        .map(position)
        .collect::<Result<Vec<_>, _>>()?;
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
    let mut unfocused = Vec::new();
    for (number, (text, position)) in enter_texts.iter().zip(positions).enumerate() {
        if !enter_one(&page, text, position).await? {
            unfocused.push(number + 1);
        }
    }
    let mut message = match enter_texts.len() {
        1 => "Entered the text.".to_owned(),
        count => format!("Entered {count} texts."),
    };
    if !unfocused.is_empty() {
        message.push_str(&format!(
            " No field had the focus for text {unfocused:?}: the page may have ignored it. browser_view_interactive_elements shows the \
             positions of fields."
        ));
    }
    observe_after_load(&tool_state, &browser, message).await
}

fn position(text: &EnterText) -> Result<Option<Point>> {
    if text.text.len() > MAX_TEXT {
        return Err(Problem::new(format!(
            "a text is longer than {MAX_TEXT} bytes"
        )));
    }
    match (text.coordinate_x, text.coordinate_y) {
        (Some(x), Some(y)) => Point::new(x, y).map(Some),
        (None, None) => Ok(None),
        _ => Err(Problem::new(
            "give both coordinate_x and coordinate_y, or neither",
        )),
    }
}

/// Types one text. Returns whether a field had the focus.
async fn enter_one(page: &Page<'_>, text: &EnterText, position: Option<Point>) -> Result<bool> {
    if let Some(at) = position {
        mouse::click(page, at, 1).await?;
    }
    let focus = page
        .script(include_str!("../scripts/focus.js"), &[])
        .await?;
    if text.replaces == Some(true) && focus != "nothing" {
        typing::clear(page).await?;
    } else if position.is_some() && focus == "field" {
        typing::to_end(page).await?;
    }
    typing::text(page, &text.text).await?;
    if text.press_enter == Some(true) {
        typing::press(page, "Enter").await?;
    }
    Ok(focus != "nothing")
}
