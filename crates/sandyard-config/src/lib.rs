//! Settings: from flags, environment and file, checked, and their reference.
//!
//! One table says everything about a setting: its key, its variables, its flag, its kind, its default and what it is for.
//! All else follows from it, so a new setting is one entry there and one field of [`Settings`]. The settings of a provider are
//! declared in the provider's folder; the program hands them over as part of its [`Table`].
//!
//! - [`table`]: every setting, a file per section
//! - [`kind`]: what a value may be, and its parsing
//! - [`source`]: flags, variables, `.env`, the configuration file
//! - [`load`](mod@load): the sources laid over one another, all problems at once
//! - [`settings`]: the typed result
//! - [`binding`]: when the server refuses to start
//! - [`show`]: effective settings, the reference, the example file
//!
//! Strongest first: flags, environment, `.env` in the working directory, configuration file, default.
//!
//! This crate never reads the environment on its own: [`Sources`] carries it, so that tests are pure. Nor does it know the
//! command line, the store or the engine.
#![forbid(unsafe_code)]

pub mod binding;
pub mod kind;
pub mod load;
mod nearest;
pub mod problem;
mod secret;
pub mod setting;
pub mod settings;
pub mod show;
pub mod source;
pub mod table;
mod values;

pub use binding::{check_binding, is_open};
pub use kind::Kind;
pub use kind::network::Network;
pub use kind::sealing_key::SealingKey;
pub use load::{Loaded, load};
pub use nearest::nearest;
pub use problem::{Problem, Problems};
pub use secret::Secret;
pub use setting::{ProviderSettings, Section, Setting};
pub use settings::Settings;
pub use show::{example_toml, reference_markdown};
pub use source::{Origin, Sources};
pub use table::Table;
pub use values::Values;
