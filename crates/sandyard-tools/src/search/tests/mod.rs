//! The search tools with real folders.

mod ast_grep;
mod glob_and_list;
mod grep;
