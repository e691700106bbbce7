//! The verbs, one file a subject.

mod accounts;
mod commands;
mod files;
mod folders;
mod history;
mod lifecycle;
mod listing;
mod network;
mod operations;
mod ports;
mod secrets;
mod templates;
mod volumes;

pub use history::FollowLogs;
