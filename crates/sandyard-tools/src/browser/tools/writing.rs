//! Text into fields.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::mouse::{self, Point};
use super::super::page::Page;
use super::super::typing;
use super::{rest_and_look, turn, unless_cancelled};
use crate::reply::{Answer, Problem};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

/// Longest text.
const MAX_TEXT: usize = 1024 * 1024;
/// Most texts at once.
const MAX_TEXTS: usize = 50;

#[derive(Deserialize, JsonSchema)]
struct EnterText {
    /// What to type.
    text: String,
    /// Where the field is: from the left. Without coordinates the text goes where the focus is.
    #[serde(default)]
    coordinate_x: Option<f64>,
    /// Where the field is: from the top.
    #[serde(default)]
    coordinate_y: Option<f64>,
    /// Presses Enter afterwards.
    #[serde(default)]
    press_enter: Option<bool>,
    /// Takes away first what is in the field; otherwise the text is added at its end.
    #[serde(default, rename = "override")]
    replaces: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct EnterTexts {
    /// The texts and their fields, typed one after the other.
    enter_texts: Vec<EnterText>,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<EnterText, _, _>(
            "browser_enter_text",
            "Enter text",
            Effect::ChangesOutside,
            "Clicks on a field and types a text into it.",
            |workshop, args, call| {
                unless_cancelled(
                    call,
                    enter(
                        workshop,
                        EnterTexts {
                            enter_texts: vec![args],
                        },
                    ),
                )
            },
        ),
        tool::<EnterTexts, _, _>(
            "browser_enter_multi_texts",
            "Enter several texts",
            Effect::ChangesOutside,
            "Types texts into several fields, as a form has them.",
            |workshop, args, call| unless_cancelled(call, enter(workshop, args)),
        ),
    ]
}

async fn enter(workshop: Arc<Workshop>, EnterTexts { enter_texts }: EnterTexts) -> Answer {
    if enter_texts.is_empty() || enter_texts.len() > MAX_TEXTS {
        return Err(Problem::new(format!(
            "give between 1 and {MAX_TEXTS} texts at once"
        )));
    }
    // All of it is looked at before any of it is done.
    let places = enter_texts
        .iter()
        .map(place)
        .collect::<Result<Vec<_>, _>>()?;
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
    let mut lost = Vec::new();
    for (number, (text, place)) in enter_texts.iter().zip(places).enumerate() {
        if !enter_one(&page, text, place).await? {
            lost.push(number + 1);
        }
    }
    let mut words = match enter_texts.len() {
        1 => "Entered the text.".to_owned(),
        count => format!("Entered {count} texts."),
    };
    if !lost.is_empty() {
        words.push_str(&format!(
            " No field had the focus for text {lost:?}: unless the page itself listens to keys, it went nowhere. \
             browser_view_interactive_elements shows where fields are."
        ));
    }
    rest_and_look(&workshop, &turn, words).await
}

fn place(text: &EnterText) -> Result<Option<Point>, Problem> {
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

/// Says whether there was a field for it.
async fn enter_one(
    page: &Page<'_>,
    text: &EnterText,
    place: Option<Point>,
) -> Result<bool, Problem> {
    if let Some(at) = place {
        mouse::click(page, at, 1).await?;
    }
    let focus = page
        .script(include_str!("../scripts/focus.js"), &[])
        .await?;
    if text.replaces == Some(true) && focus != "nothing" {
        typing::clear(page).await?;
    } else if place.is_some() && focus == "field" {
        typing::to_end(page).await?;
    }
    typing::text(page, &text.text).await?;
    if text.press_enter == Some(true) {
        typing::named(page, "Enter").await?;
    }
    Ok(focus != "nothing")
}
