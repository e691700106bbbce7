//! The keyboard.

use serde_json::json;

use super::keys::{Chord, Key};
use super::page::Page;
use super::pipe::Failure;

/// Texts up to this length are typed key by key, as pages that look at keys expect; longer ones are put in at once.
const TYPED: usize = 200;

/// Types a text where the focus is.
pub(super) async fn text(page: &Page<'_>, text: &str) -> Result<(), Failure> {
    // A line break would send a form whose field takes only one line.
    if text.len() > TYPED || text.contains(['\n', '\r', '\t']) {
        return page.act("Input.insertText", json!({ "text": text })).await;
    }
    for char in text.chars() {
        let key = Key::of(char);
        press(page, key.down(0)).await?;
        press(page, key.up(0)).await?;
    }
    Ok(())
}

/// Presses a key with others held.
pub(super) async fn chord(page: &Page<'_>, chord: &Chord) -> Result<(), Failure> {
    for event in chord.events() {
        press(page, event).await?;
    }
    Ok(())
}

/// Takes away what is in the field that has the focus.
pub(super) async fn clear(page: &Page<'_>) -> Result<(), Failure> {
    named(page, "Control+A").await?;
    named(page, "Delete").await
}

/// Goes to the end of what is in the field that has the focus.
pub(super) async fn to_end(page: &Page<'_>) -> Result<(), Failure> {
    named(page, "Control+End").await
}

/// Presses a key we know by its name.
pub(super) async fn named(page: &Page<'_>, name: &str) -> Result<(), Failure> {
    let keys = Chord::read(name).map_err(|problem| Failure::Refused(problem.to_string()))?;
    chord(page, &keys).await
}

async fn press(page: &Page<'_>, event: serde_json::Value) -> Result<(), Failure> {
    page.act("Input.dispatchKeyEvent", event).await
}
