//! `SlideWrite`, `SlideEdit` and `slide_apply_patch`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::deck::{Deck, Slide};
use crate::files::{apply_patch_below, change, diff, patch_summary, replace, write_atomically};
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, workspace_tool};
use crate::workspace::Workspace;

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// Name of the presentation and of its folder.
    presentation_name: String,
    /// Number of the slide, starting with 1.
    slide_number: u32,
    /// The complete slide: an HTML document with inline styles.
    content: String,
    /// Title of the slide in the list.
    title: Option<String>,
    /// Description of the slide.
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// Name of the presentation.
    presentation_name: String,
    /// Number of the slide, starting with 1.
    slide_number: u32,
    /// Text to replace, exactly as in the slide.
    old_string: String,
    /// Replacement text.
    new_string: String,
    /// Replace all occurrences (default false).
    #[serde(default)]
    replace_all: bool,
    /// New title of the slide.
    title: Option<String>,
    /// New description of the slide.
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Patch {
    /// Patch in the format of apply_patch. Paths are relative to the folder of all presentations, for example "talk/slide_001.html".
    input: String,
}

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        workspace_tool("SlideWrite", Effect::Changes, write)
            .title("Write a slide")
            .description("Write one slide of a presentation as an HTML file (presentations/NAME/slide_001.html in the workspace) and update the list of \
             slides in metadata.json."),
        workspace_tool("SlideEdit", Effect::Changes, edit)
            .title("Edit a slide")
            .description("Replace text in one slide. The old text must occur exactly once, unless replace_all is set. Returns the diff."),
        workspace_tool("slide_apply_patch", Effect::Changes, patch)
            .title("Patch slides")
            .description("Change several slides with a patch in the format of apply_patch. Either the whole patch is applied, or nothing."),
    ]
}

fn write(workspace: &Workspace, args: Write) -> Answer {
    let deck = Deck::open(workspace, &args.presentation_name)?;
    let file = deck.file(workspace, args.slide_number)?;
    if args.content.trim().is_empty() {
        return Err(Problem::new(
            "the content is empty: give the complete slide as HTML",
        ));
    }
    let _lock = change::lock_changes()?;
    write_atomically(&file, &args.content)?;
    let slides = deck.list(Some((args.slide_number, args.title, args.description)))?;
    Ok(Reply::text(format!(
        "wrote {}\n{}",
        workspace.display(&file),
        slide_list(&slides)
    )))
}

fn edit(workspace: &Workspace, args: Edit) -> Answer {
    let deck = Deck::open(workspace, &args.presentation_name)?;
    let file = deck.file(workspace, args.slide_number)?;
    let name = workspace.display(&file);
    let _lock = change::lock_changes()?;
    let before = change::read(&file)?;
    let before = before.ok_or_else(|| {
        Problem::new(format!(
            "{name} does not exist: write it with SlideWrite first"
        ))
    })?;
    let after = replace(
        &name,
        &before,
        &args.old_string,
        &args.new_string,
        args.replace_all,
    )?;
    write_atomically(&file, &after)?;
    deck.list(Some((args.slide_number, args.title, args.description)))?;
    Ok(Reply::text(diff(&name, &before, &after)))
}

fn patch(workspace: &Workspace, Patch { input }: Patch) -> Answer {
    let all = Deck::all(workspace);
    std::fs::create_dir_all(&all)
        .map_err(|error| Problem::new(format!("{} cannot be created: {error}", all.display())))?;
    let changed = apply_patch_below(workspace, &all, &input)?;
    let _lock = change::lock_changes()?;
    let folders = changed
        .iter()
        .filter_map(|file| file.path.parent()?.file_name()?.to_str());
    for name in folders.collect::<BTreeSet<_>>() {
        // A patch may create other files, or remove the last slide.
        if let Ok(deck) = Deck::open(workspace, name) {
            let _ = deck.list(None);
        }
    }
    Ok(Reply::text(patch_summary(workspace, &changed)))
}

fn slide_list(slides: &[Slide]) -> String {
    let line = |slide: &Slide| format!("{}. {}", slide.number, slide.title);
    slides.iter().map(line).collect::<Vec<_>>().join("\n")
}
