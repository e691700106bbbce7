//! Parses code, which may be malicious, within limits of time and depth.

use std::ops::ControlFlow;

use ast_grep_core::tree_sitter::LanguageExt;
use ast_grep_language::SupportLang;
use tree_sitter::{ParseOptions, Parser, Tree};

use crate::files::blocking::Bounds;

/// Maximum depth. Deeper code is generated, and matching it would recurse as deep.
pub(super) const MAX_DEPTH: usize = 2_000;
/// Number of nodes between two checks of the time.
pub(super) const STEPS: usize = 256;

/// Parses code; none if the time is up.
pub(super) fn parse(text: &str, language: SupportLang, bounds: &Bounds) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language.get_ts_language()).ok()?;
    let mut check_time = |_: &_| {
        if bounds.are_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut check_time);
    let mut rest = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options))
}

/// Returns whether code is nested too deeply; none if the time is up.
pub(super) fn is_too_deep(tree: &Tree, bounds: &Bounds) -> Option<bool> {
    let mut cursor = tree.walk();
    let mut depth = 0;
    for number in 0_usize.. {
        if number % STEPS == 0 && bounds.are_over() {
            return None;
        }
        if cursor.goto_first_child() {
            depth += 1;
            if depth > MAX_DEPTH {
                return Some(true);
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(false);
            }
            depth -= 1;
        }
    }
    None
}
