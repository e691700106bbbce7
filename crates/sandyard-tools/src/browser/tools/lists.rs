//! What can be used on the page, by number, and lists to choose from.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::look::{Said, look};
use super::super::notes::short;
use super::{rest, rest_and_look, turn, unless_cancelled};
use crate::reply::{Answer, Problem};
use crate::tool::{Effect, Nothing, Tool, tool};
use crate::workshop::Workshop;

/// Most elements.
const MAX_ELEMENTS: usize = 300;
/// How long the numbers stay at most, if nobody takes them away, in milliseconds.
const LIFE: u64 = 10_000;

#[derive(Deserialize, JsonSchema)]
struct ListIndex {
    /// The number of the list, as browser_view_interactive_elements shows it.
    index: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Choice {
    /// The number of the list, as browser_view_interactive_elements shows it.
    index: usize,
    /// The option's text, or its value.
    option: String,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<Nothing, _, _>(
            "browser_view_interactive_elements",
            "View what can be used",
            Effect::Looks,
            "Lists links, buttons, fields and whatever else can be used in the part of the page that is seen: number, \
                 kind, text and \
             the coordinates of the middle, for browser_click and browser_enter_text. The screenshot has the numbers \
             drawn in.",
            |workshop, _, call| unless_cancelled(call, view(workshop)),
        ),
        tool::<ListIndex, _, _>(
            "browser_get_select_options",
            "Options of a list",
            Effect::Looks,
            "Tells the options of a drop-down list (a select element), by its number in browser_view_interactive_elements.",
            |workshop, args, call| unless_cancelled(call, options(workshop, args.index)),
        ),
        tool::<Choice, _, _>(
            "browser_select_dropdown_option",
            "Choose from a list",
            Effect::ChangesOutside,
            "Chooses an option of a drop-down list (a select element), by the list's number in \
                 browser_view_interactive_elements and \
             the option's text.",
            |workshop, args, call| unless_cancelled(call, choose(workshop, args)),
        ),
    ]
}

async fn view(workshop: Arc<Workshop>) -> Answer {
    let turn = turn(&workshop).await?;
    let rest = rest(&turn).await?;
    let page = turn.running()?.page().await?;
    let arguments = [json!(MAX_ELEMENTS), json!(LIFE)];
    let found = page
        .script(include_str!("../scripts/elements.js"), &arguments)
        .await?;
    let empty = Vec::new();
    let elements = found["told"].as_array().unwrap_or(&empty);
    let mut lines: Vec<_> = elements.iter().enumerate().map(line).collect();
    if found["more"] == true {
        lines.push(format!(
            "There are more than these {}; scroll to see others.",
            elements.len()
        ));
    }
    let words = match elements.len() {
        0 => "Nothing that is seen can be used; scroll, or wait for the page.".to_owned(),
        count => format!("{count} elements can be used."),
    };
    let said = Said {
        words,
        rest: Some(rest),
        more: Some(lines.join("\n")),
    };
    let answer = look(&turn, &workshop.workspace, said).await;
    // They go away by themselves if the page does not answer now.
    let _ = page
        .script(include_str!("../scripts/uncover.js"), &[])
        .await;
    answer
}

fn line((number, element): (usize, &Value)) -> String {
    let text = |key: &str| short(element[key].as_str().unwrap_or_default(), 100);
    let mut line = format!("[{number}] {}", text("tag"));
    if !text("kind").is_empty() {
        line.push_str(&format!(" ({})", text("kind")));
    }
    line.push_str(&format!(" {:?}", text("text")));
    if !text("value").is_empty() {
        line.push_str(&format!(" has {:?}", text("value")));
    }
    if element["on"] == true {
        line.push_str(" checked");
    }
    if element["off"] == true {
        line.push_str(" disabled");
    }
    line.push_str(&format!(" at ({}, {})", element["x"], element["y"]));
    line
}

async fn options(workshop: Arc<Workshop>, index: usize) -> Answer {
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
    let found = page
        .script(include_str!("../scripts/options.js"), &[json!(index)])
        .await?;
    problem(&found, index)?;
    let empty = Vec::new();
    let options = found["options"].as_array().unwrap_or(&empty);
    let mut lines: Vec<_> = options
        .iter()
        .map(|option| {
            let text = |key: &str| short(option[key].as_str().unwrap_or_default(), 200);
            let chosen = if option["chosen"] == true {
                " chosen"
            } else {
                ""
            };
            let off = if option["off"] == true {
                " disabled"
            } else {
                ""
            };
            format!(
                "- {:?} (value {:?}){chosen}{off}",
                text("text"),
                text("value")
            )
        })
        .collect();
    let count = found["count"].as_u64().unwrap_or_default();
    if count > options.len() as u64 {
        lines.push(format!("These are the first {} of {count}.", options.len()));
    }
    let said = Said {
        words: format!("The list {index} has {count} options."),
        rest: None,
        more: Some(lines.join("\n")),
    };
    look(&turn, &workshop.workspace, said).await
}

async fn choose(workshop: Arc<Workshop>, args: Choice) -> Answer {
    let turn = turn(&workshop).await?;
    let page = turn.running()?.page().await?;
    let arguments = [json!(args.index), json!(args.option)];
    let found = page
        .script(include_str!("../scripts/choose.js"), &arguments)
        .await?;
    problem(&found, args.index)?;
    let chosen = short(found["chosen"].as_str().unwrap_or_default(), 200);
    rest_and_look(&workshop, &turn, format!("Chose {chosen:?}.")).await
}

fn problem(found: &Value, index: usize) -> Result<(), Problem> {
    let words = match found["problem"].as_str() {
        None => return Ok(()),
        Some("other") => format!(
            "element {index} is not a drop-down list but {}: click on it and choose from what opens",
            found["tag"]
        ),
        Some("off") => "the list or the option is disabled".to_owned(),
        Some("none") => format!(
            "there is no such option; there are {}",
            short(&found["options"].to_string(), 4000)
        ),
        Some(_) => format!(
            "there is no element {index} on this page any more: call browser_view_interactive_elements and take the \
                 number from there"
        ),
    };
    Err(Problem::new(words))
}
