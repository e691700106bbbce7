//! `SlideWrite`, `SlideEdit` and `slide_apply_patch`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::deck::{Deck, Slide};
use crate::files::blocking::blocking;
use crate::files::{apply_patch_below, change, diff, replace, told_patch, write_atomically};
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workspace::Workspace;

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// The presentation's name, which is its folder too.
    presentation_name: String,
    /// Which slide, from 1.
    slide_number: u32,
    /// The whole slide: an HTML document with its styles in it.
    content: String,
    /// What the slide is called in the list.
    title: Option<String>,
    /// What the slide is about.
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// The presentation's name.
    presentation_name: String,
    /// Which slide, from 1.
    slide_number: u32,
    /// The text to be replaced, exactly as it is in the slide.
    old_string: String,
    /// What comes in its place.
    new_string: String,
    /// Replace every place, not just one.
    #[serde(default)]
    replace_all: bool,
    /// What the slide is called in the list from now on.
    title: Option<String>,
    /// What the slide is about from now on.
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Patch {
    /// The patch, in the format of apply_patch; paths begin at the folder of all presentations, like "talk/slide_001.html".
    input: String,
}

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool::<Write, _, _>(
            "SlideWrite",
            "Write a slide",
            Effect::Changes,
            "Writes one slide of a presentation as an HTML file, presentations/NAME/slide_001.html in the workspace, and keeps \
             the list of slides in metadata.json.",
            |workshop, args, _call| async move {
                let workspace = workshop.workspace.clone();
                blocking(move || write(&workspace, args)).await
            },
        ),
        tool::<Edit, _, _>(
            "SlideEdit",
            "Change a slide",
            Effect::Changes,
            "Replaces a text in one slide by another. The old text must be there exactly once, or give replace_all. Answers \
             with the difference.",
            |workshop, args, _call| async move {
                let workspace = workshop.workspace.clone();
                blocking(move || edit(&workspace, args)).await
            },
        ),
        tool::<Patch, _, _>(
            "slide_apply_patch",
            "Patch slides",
            Effect::Changes,
            "Changes several slides at once with a patch in the format of apply_patch; all of it is done or nothing.",
            |workshop, args, _call| async move {
                let workspace = workshop.workspace.clone();
                blocking(move || patch(&workspace, &args.input)).await
            },
        ),
    ]
}

fn write(workspace: &Workspace, args: Write) -> Answer {
    let deck = Deck::named(workspace, &args.presentation_name)?;
    let file = deck.file(workspace, args.slide_number)?;
    if args.content.trim().is_empty() {
        return Err(Problem::new(
            "the content is empty: give the whole slide as HTML",
        ));
    }
    let _turn = change::turn()?;
    write_atomically(&file, &args.content)?;
    let slides = deck.list(Some((args.slide_number, args.title, args.description)))?;
    Ok(Reply::text(format!(
        "wrote {}\n{}",
        workspace.shown(&file),
        shown(&slides)
    )))
}

fn edit(workspace: &Workspace, args: Edit) -> Answer {
    let deck = Deck::named(workspace, &args.presentation_name)?;
    let file = deck.file(workspace, args.slide_number)?;
    let name = workspace.shown(&file);
    let _turn = change::turn()?;
    let before = change::read(&file)?;
    let before = before.ok_or_else(|| {
        Problem::new(format!(
            "there is no {name}: write it with SlideWrite first"
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

fn patch(workspace: &Workspace, input: &str) -> Answer {
    let all = Deck::all(workspace);
    std::fs::create_dir_all(&all)
        .map_err(|error| Problem::new(format!("{} cannot be made: {error}", all.display())))?;
    let changed = apply_patch_below(workspace, &all, input)?;
    let _turn = change::turn()?;
    let folders = changed
        .iter()
        .filter_map(|file| file.path.parent()?.file_name()?.to_str());
    for name in folders.collect::<BTreeSet<_>>() {
        // A patch may make other files there, and take the last slide away.
        if let Ok(deck) = Deck::named(workspace, name) {
            let _ = deck.list(None);
        }
    }
    Ok(Reply::text(told_patch(workspace, &changed)))
}

fn shown(slides: &[Slide]) -> String {
    let line = |slide: &Slide| format!("{}. {}", slide.number, slide.title);
    slides.iter().map(line).collect::<Vec<_>>().join("\n")
}
