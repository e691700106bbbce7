//! Operations of the API, one file for each subject.

mod accounts;
mod archives;
mod commands;
mod files;
mod history;
mod lifecycle;
mod network;
mod operations;
mod ports;
mod secrets;
mod templates;
mod volumes;
mod wrapped;

pub use history::FollowLogs;
