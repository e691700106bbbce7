//! The verbs, one file a subject.

mod accounts;
mod commands;
mod files;
mod folders;
mod history;
mod lifecycle;
mod listing;
mod operations;
mod ports;
mod templates;

pub use history::FollowLogs;
