//! Reading code that may be made to harm: within a time, and not too deep.

use std::ops::ControlFlow;

use ast_grep_core::tree_sitter::LanguageExt;
use ast_grep_language::SupportLang;
use tree_sitter::{ParseOptions, Parser, Tree};

use crate::files::blocking::Bounds;

/// Code that is nested deeper is left out: it is made by programs, and comparing it would go as deep.
pub(super) const MAX_DEPTH: usize = 2_000;
/// How many parts of a file are looked at between two looks at the clock.
pub(super) const STEPS: usize = 256;

/// Reads code, unless the time is up before that.
pub(super) fn parse(text: &str, language: SupportLang, bounds: &Bounds) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language.get_ts_language()).ok()?;
    let mut go_on = |_: &_| {
        if bounds.are_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut go_on);
    let mut rest = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options))
}

/// Whether code is nested too deeply; none if the time is up.
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
