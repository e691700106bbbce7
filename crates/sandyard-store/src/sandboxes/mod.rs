//! The table of sandboxes: one file a verb.

mod claim;
mod commit;
mod find;
mod insert;
mod list;
mod maintenance;
mod row;
