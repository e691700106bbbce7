//! Settings for people: what is in force, the reference, the example file.

mod effective;
mod example;
mod reference;

pub use example::example_toml;
pub use reference::reference_markdown;
