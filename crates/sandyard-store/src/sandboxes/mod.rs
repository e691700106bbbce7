//! The table of sandboxes, one file per operation.

mod claim;
mod commit;
mod find;
mod insert;
mod list;
mod maintenance;
mod row;
