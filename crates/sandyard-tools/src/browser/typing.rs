//! Keyboard input.

use serde_json::json;

use super::keys::{Chord, Key};
use super::page::Page;
use super::pipe::Failure;

/// Maximum length of a text that is typed key by key, for pages that handle key events. Longer texts are inserted at once.
const MAX_TYPED: usize = 200;

/// Types a text into the focused element.
pub(super) async fn text(page: &Page<'_>, text: &str) -> Result<(), Failure> {
    // The Enter key would submit a form.
    if text.len() > MAX_TYPED || text.contains(['\n', '\r', '\t']) {
        return page.act("Input.insertText", json!({ "text": text })).await;
    }
    for char in text.chars() {
        let key = Key::of(char);
        dispatch_key(page, key.down(0)).await?;
        dispatch_key(page, key.up(0)).await?;
    }
    Ok(())
}

/// Presses a key combination.
pub(super) async fn chord(page: &Page<'_>, chord: &Chord) -> Result<(), Failure> {
    for event in chord.events() {
        dispatch_key(page, event).await?;
    }
    Ok(())
}

/// Clears the focused field.
pub(super) async fn clear(page: &Page<'_>) -> Result<(), Failure> {
    press(page, "Control+A").await?;
    press(page, "Delete").await
}

/// Moves to the end of the focused field.
pub(super) async fn to_end(page: &Page<'_>) -> Result<(), Failure> {
    press(page, "Control+End").await
}

/// Presses a key combination by name.
pub(super) async fn press(page: &Page<'_>, name: &str) -> Result<(), Failure> {
    let keys = Chord::parse(name).map_err(|problem| Failure::Refused(problem.to_string()))?;
    chord(page, &keys).await
}

async fn dispatch_key(page: &Page<'_>, event: serde_json::Value) -> Result<(), Failure> {
    page.act("Input.dispatchKeyEvent", event).await
}
