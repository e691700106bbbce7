//! Interactive elements by number, and drop-down lists.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::notes::short;
use super::super::observe::{Summary, observe};
use super::{acquire, observe_after_load, wait_for_load};
use crate::reply::{Answer, Problem, Result};
use crate::tool::{Effect, NoArguments, Tool, cancellable};
use crate::tool_state::ToolState;

/// Maximum number of elements.
const MAX_ELEMENTS: usize = 300;
/// How long the drawn numbers stay if they are not removed, in milliseconds.
const LABEL_LIFETIME_MS: u64 = 10_000;

#[derive(Deserialize, JsonSchema)]
struct ListIndex {
    /// Number of the drop-down list, as browser_view_interactive_elements shows it.
    index: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Choice {
    /// Number of the drop-down list, as browser_view_interactive_elements shows it.
    index: usize,
    /// Text or value of the option.
    option: String,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        cancellable("browser_view_interactive_elements", Effect::Reads, view)
            .title("View interactive elements")
            .description("List links, buttons, fields and other interactive elements in the visible part of the page: number, type, text and the \
             coordinates of the centre, for browser_click and browser_enter_text. The screenshot shows the numbers."),
        cancellable("browser_get_select_options", Effect::Reads, options)
            .title("Get options of a drop-down list")
            .description("Return the options of a drop-down list (a select element), by its number in browser_view_interactive_elements."),
        cancellable("browser_select_dropdown_option", Effect::ChangesExternal, choose)
            .title("Select an option")
            .description("Select an option of a drop-down list (a select element), by the number of the list in \
             browser_view_interactive_elements and the text of the option."),
    ]
}

async fn view(tool_state: Arc<ToolState>, _: NoArguments) -> Answer {
    let browser = acquire(&tool_state).await?;
    let load_state = wait_for_load(&browser).await?;
    let page = browser.running()?.page().await?;
    let arguments = [json!(MAX_ELEMENTS), json!(LABEL_LIFETIME_MS)];
    let found = page
        .script(include_str!("../scripts/elements.js"), &arguments)
        .await?;
    let empty = Vec::new();
    let elements = found["elements"].as_array().unwrap_or(&empty);
    let mut lines: Vec<_> = elements.iter().enumerate().map(line).collect();
    if found["more"] == true {
        lines.push(format!(
            "There are more than these {} elements: scroll to see others.",
            elements.len()
        ));
    }
    let text = match elements.len() {
        0 => "No interactive elements are visible: scroll, or wait for the page.".to_owned(),
        count => format!("{count} interactive elements."),
    };
    let summary = Summary {
        text,
        load_state: Some(load_state),
        details: Some(lines.join("\n")),
    };
    let answer = observe(&browser, &tool_state.workspace, summary).await;
    // If the page does not answer, the numbers disappear after a while.
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

async fn options(tool_state: Arc<ToolState>, ListIndex { index }: ListIndex) -> Answer {
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
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
        lines.push(format!(
            "These are the first {} of {count} options.",
            options.len()
        ));
    }
    let summary = Summary {
        text: format!("The list {index} has {count} options."),
        load_state: None,
        details: Some(lines.join("\n")),
    };
    observe(&browser, &tool_state.workspace, summary).await
}

async fn choose(tool_state: Arc<ToolState>, args: Choice) -> Answer {
    let browser = acquire(&tool_state).await?;
    let page = browser.running()?.page().await?;
    let arguments = [json!(args.index), json!(args.option)];
    let found = page
        .script(include_str!("../scripts/choose.js"), &arguments)
        .await?;
    problem(&found, args.index)?;
    let chosen = short(found["chosen"].as_str().unwrap_or_default(), 200);
    observe_after_load(&tool_state, &browser, format!("Chose {chosen:?}.")).await
}

fn problem(result: &Value, index: usize) -> Result<()> {
    let message = match result["problem"].as_str() {
        None => return Ok(()),
        Some("other") => format!(
            "element {index} is not a drop-down list but {}: click it and choose from the menu that opens",
            result["tag"]
        ),
        Some("off") => "the list or the option is disabled".to_owned(),
        Some("none") => format!(
            "the option does not exist; the options are {}",
            short(&result["options"].to_string(), 4000)
        ),
        Some(_) => format!(
            "element {index} is no longer on this page: call browser_view_interactive_elements again for the numbers"
        ),
    };
    Err(Problem::new(message))
}
